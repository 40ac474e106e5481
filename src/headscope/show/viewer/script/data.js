// One text in every head, unpacked: Z -> C -> N -> high pairs, by the definitions of the library; see packing.py.

const STRONG = 128, FINE = 32767, MEMORY = 96e6;

async function inflated(packed) {
  const letters = atob(packed), bytes = new Uint8Array(letters.length);
  for (let k = 0; k < bytes.length; k++) bytes[k] = letters.charCodeAt(k);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).arrayBuffer();
}

// The newest of what is large.
class Newest {
  constructor(most) {
    this.most = most;
    this.kept = new Map();
  }

  get(key, make) {
    const found = this.kept.get(key) ?? make();
    this.kept.delete(key);
    this.kept.set(key, found);
    if (this.kept.size > this.most) this.kept.delete(this.kept.keys().next().value);
    return found;
  }
}

export class Text {
  constructor(packed) {
    Object.assign(this, packed);
    this.unpacked = new Map();
    const most = Math.max(4, Math.floor(MEMORY / (8 * this.size ** 2)));
    this.matrices = new Newest(most);
    this.weights = new Newest(most);
    this.pairs = 0;
    this.together = 0;
    this.equal = 0;
    this.everyPair((i, j) => {
      this.pairs++;
      this.together += this.inOneSentence(i, j);
      this.equal += this.ids[i] === this.ids[j];
    });
  }

  everyPair(use) {
    for (let i = 0; i < this.size; i++)
      if (this.part[i]) for (let j = i + 1; j < this.size; j++) if (this.part[j]) use(i, j);
  }

  inOneSentence(i, j) {
    return this.sentences[i] >= 0 && this.sentences[i] === this.sentences[j];
  }

  measuredOf(place, head) {
    return this.measured[place][head];
  }

  // What follows can be asked of a head once it is loaded.
  async load(place, head) {
    const key = place * this.heads + head;
    if (this.unpacked.has(key)) return;
    const { z, a } = this.measuredOf(place, head);
    const [outputs, weights] = await Promise.all([inflated(z), inflated(a)]);
    this.unpacked.set(key, {
      mean: new Float32Array(outputs, 0, this.width),
      scale: new Float32Array(outputs, 4 * this.width, this.size),
      whole: new Int16Array(outputs, 4 * (this.width + this.size)),
      weights: new Uint8Array(weights),
    });
  }

  async loadLayer(place) {
    for (let head = 0; head < this.heads; head++) await this.load(place, head);
  }

  attention(place, head) {
    if (head < 0) return this.meanOf(place, "attention", (each) => this.attention(place, each));
    return this.weights.get(place * this.heads + head, () => {
      const { weights } = this.unpacked.get(place * this.heads + head);
      const S = this.size, matrix = new Float32Array(S * S);
      let strong = S * S;
      for (let j = 0, k = 0; j < S; j++)
        for (let i = 0; i < S; i++, k++) {
          const byte = weights[k];
          matrix[i * S + j] = byte < STRONG ? this.small * (byte / this.levels) ** 2 : ((byte - STRONG) * 256 + weights[strong++]) / FINE;
        }
      return matrix;
    });
  }

  normalised(place, head, how) {
    if (head < 0) return this.meanOf(place, how, (each) => this.normalised(place, each, how));
    return this.matrices.get(`${how} ${place} ${head}`, () => {
      const S = this.size, d = this.width, matrix = new Float32Array(S * S), rows = this.compared(place, head, how);
      let largest = -Infinity;
      this.everyPair((i, j) => {
        let sum = 0;
        for (let k = 0, a = i * d, b = j * d; k < d; k++) sum += rows[a + k] * rows[b + k];
        matrix[i * S + j] = sum;
        if (sum > largest) largest = sum;
      });
      if (!(largest > 0)) return matrix.fill(0);
      this.everyPair((i, j) => (matrix[j * S + i] = matrix[i * S + j] /= largest));
      if (how === this.similarity)
        for (const [k, value] of this.measuredOf(place, head).exact) matrix[k] = matrix[(k % S) * S + Math.floor(k / S)] = value;
      return matrix;
    });
  }

  meanOf(place, what, matrixOf) {
    return this.matrices.get(`mean ${what} ${place}`, () => {
      const mean = new Float32Array(this.size ** 2);
      for (let head = 0; head < this.heads; head++) {
        const matrix = matrixOf(head);
        for (let k = 0; k < mean.length; k++) mean[k] += matrix[k] / this.heads;
      }
      return mean;
    });
  }

  compared(place, head, how) {
    const { mean, scale, whole } = this.unpacked.get(place * this.heads + head);
    const S = this.size, d = this.width, rows = new Float64Array(S * d);
    for (let i = 0; i < S; i++) for (let k = 0; k < d; k++) rows[i * d + k] = whole[i * d + k] * scale[i] + mean[k];
    if (how === "cosine")
      for (let i = 0; i < S; i++) {
        let square = 0;
        for (let k = 0; k < d; k++) square += rows[i * d + k] ** 2;
        const length = Math.sqrt(square) || 1;
        for (let k = 0; k < d; k++) rows[i * d + k] /= length;
      }
    if (how === "centred") {
      const parts = Math.max(1, this.part.reduce((sum, one) => sum + one, 0));
      for (let k = 0; k < d; k++) {
        let middle = 0;
        for (let i = 0; i < S; i++) middle += this.part[i] ? rows[i * d + k] / parts : 0;
        for (let i = 0; i < S; i++) rows[i * d + k] -= middle;
      }
    }
    return rows;
  }

  // The pairs above a threshold and what they have in common; shares of no pairs are NaN.
  high(matrix, threshold) {
    const S = this.size, limit = Math.fround(threshold), found = [], count = new Uint16Array(S), twice = new Map();
    let distance = 0, together = 0, equal = 0, both = 0;
    this.everyPair((i, j) => {
      if (!(matrix[i * S + j] > limit)) return;
      const same = this.ids[i] === this.ids[j], one = this.inOneSentence(i, j);
      found.push(i * S + j);
      count[i]++;
      count[j]++;
      distance += j - i;
      together += one;
      equal += same;
      both += one && same;
      twice.set(this.ids[i], (twice.get(this.ids[i]) ?? 0) + 1);
      if (!same) twice.set(this.ids[j], (twice.get(this.ids[j]) ?? 0) + 1);
    });
    let focal = null;
    for (const [id, pairs] of twice)
      if (focal === null || pairs > twice.get(focal) || (pairs === twice.get(focal) && id < focal)) focal = id;
    const pairs = found.length;
    return {
      found,
      count,
      focal: focal === null ? [] : [...this.ids.keys()].filter((i) => this.ids[i] === focal),
      numbers: {
        pairs_per_window: pairs,
        mean_distance: distance / pairs,
        same_sentence_probability: together / pairs,
        repeat_probability: equal / pairs,
        repeat_probability_in_sentence: both / together,
        focal_share: focal === null ? NaN : twice.get(focal) / pairs,
      },
    };
  }

  get chances() {
    return { same_sentence_probability: this.together / this.pairs, repeat_probability: this.equal / this.pairs };
  }

  // Of columns that follow from attention; the library counted them.
  ownNumbers(place, head) {
    const found = Object.entries(this.own).map(([name, rows]) => [name, rows[place][head]]);
    return { ...Object.fromEntries(found), lines_per_window: this.measuredOf(place, head).lines.length };
  }
}

// The sums of a study in the place of one text: positions instead of tokens, means over windows instead of matrices.
export class Sums {
  constructor(packed) {
    Object.assign(this, packed);
    this.unpacked = new Map();
    this.labels = Array.from({ length: this.size }, (_, k) => String(k));
    this.matrices = new Newest(Math.max(4, Math.floor(MEMORY / (4 * this.size ** 2))));
  }

  measuredOf() {
    return { lines: [], alike: [], standsOut: "" };
  }

  async load(place, head) {
    const key = place * this.heads + head;
    if (!this.unpacked.has(key)) this.unpacked.set(key, new Uint16Array(await inflated(this.measured[place][head])));
  }

  async loadLayer(place) {
    for (let head = 0; head < this.heads; head++) await this.load(place, head);
  }

  // what: 0 N, 1 high pairs, 2 A
  mean(place, head, what) {
    return this.matrices.get(`${what} ${place} ${head}`, () => {
      const S = this.size, mean = new Float32Array(S * S), heads = head < 0 ? [...Array(this.heads).keys()] : [head];
      for (const each of heads) {
        const packed = this.unpacked.get(place * this.heads + each).subarray(what * S * S, (what + 1) * S * S);
        const [low, step] = this.scales[place][each][what];
        for (let k = 0; k < mean.length; k++) mean[k] += (low + step * packed[k]) / heads.length;
      }
      return mean;
    });
  }

  normalised(place, head) {
    return this.mean(place, head, 0);
  }

  highShare(place, head) {
    return this.mean(place, head, 1);
  }

  attention(place, head) {
    return this.mean(place, head, 2);
  }
}
