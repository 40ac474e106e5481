// One text, or the sums of a study, in every head: the atlas, and the head that is looked at.

import { Atlas } from "./atlas.js";
import { later, make, quoted } from "./dom.js";
import { Maps, percent } from "./maps.js";
import { atlasSheet, headSheet, markup, savePng, saveText } from "./saving.js";
import { PairTable, alike, csv, numbers } from "./tables.js";
import { Tokens } from "./tokens.js";

const FEW = 3000; // high pairs that may be drawn one by one
const saver = (label, title, onclick) => make("button", { type: "button", textContent: label, title, onclick });

export class Pane {
  // state: what all panes share; choose(layer, head) and held(token) change it
  constructor(text, study, state, choose, held) {
    Object.assign(this, { text, study, state, choose, over: null, cell: null, token: null });
    this.isText = text.kind !== "sums";
    const pointedCell = (cell) => { this.cell = cell; this.soon(); };
    this.hold = (token) => { this.token = token === this.token ? null : token; this.over = this.cell = null; held(this.token); this.light(); };
    this.soon = later(() => this.light());
    this.atlas = new Atlas(text, study, (place, head) => choose(text.layers[place], head));
    this.maps = new Maps(text, pointedCell, (token) => { this.tokens?.scrollTo(token); this.hold(token); });
    if (this.isText) {
      this.tokens = new Tokens(text, (token) => { if (token !== this.over) { this.over = token; this.soon(); } }, this.hold);
      this.pairs = new PairTable(text, pointedCell, (token) => { this.tokens.scrollTo(token); this.hold(token); });
    }
    this.element = this.build();
    this.atlas.arrange(this.sort);
    this.atlas.draw(this.atlasWishes);
  }

  get sort() {
    return this.study?.columns.some(({ name }) => name === this.state.sort) ? this.state.sort : "depth";
  }

  get how() {
    return this.state.similarity ?? this.text.similarity;
  }

  get threshold() {
    return this.state.threshold ?? this.text.threshold;
  }

  get own() {
    return this.how === this.text.similarity && this.threshold === this.text.threshold;
  }

  get atlasWishes() {
    return { kind: this.state.map, how: this.how, threshold: this.threshold, oneScale: this.state.scale === "one" };
  }

  get name() {
    return `${this.text.model.replaceAll(/[^\w.-]+/g, "-")}-layer${this.layer}-${this.head < 0 ? "mean" : `head${this.head}`}`;
  }

  build() {
    const { text } = this, quiet = (words) => (words ? make("p", { class: "quiet" }, make("bdi", {}, words)) : null);
    const steps = (label, layers, heads) => make("button", { type: "button", textContent: label, onclick: () => this.step(layers, heads) });
    Object.assign(this, { title: make("h2", { ariaLive: "polite" }), standsOut: make("p"), probe: make("p", { class: "probe quiet", ariaLive: "polite" }), beside: make("div") });
    this.numbersBox = make("div", { class: "wide" });
    const head = make("section", { class: "head", ariaLabel: "The head looked at" },
      make("div", { class: "line" }, this.title,
        make("span", { class: "steps", role: "group", ariaLabel: "Go to another layer or head" }, steps("↑ layer", -1, 0), steps("↓ layer", 1, 0), steps("← head", 0, -1), steps("head →", 0, 1)),
        make("span", { class: "save", role: "group", ariaLabel: "Save this head" },
          saver("PNG", "Save the maps as a picture", () => savePng(`${this.name}.png`, this.headSheet())),
          saver("SVG", "Save the maps as vectors", () => saveText(`${this.name}.svg`, markup(this.headSheet()), "image/svg+xml")),
          this.isText ? saver("JSON", "Save pairs and numbers", () => saveText(`${this.name}.json`, this.json(), "application/json")) : null)),
      this.standsOut,
      this.isText ? this.probe : null, this.tokens?.element ?? null,
      make("div", { class: "line maps-line" }, make("h3", {}, "Maps"), this.maps.zoom), this.maps.element,
      make("section", { class: "numbers", ariaLabel: "Numbers" }, make("div", { class: "line" }, make("h3", {}, "Numbers"),
        saver("CSV", "Save these numbers", () => saveText(`${this.name}-numbers.csv`, csv(this.told.headings, this.told.rows), "text/csv"))), this.numbersBox, this.beside));
    const atlas = make("section", { class: "atlas-section", ariaLabel: "Atlas" },
      make("div", { class: "line" }, make("h2", {}, "Every head"),
        make("span", { class: "save", role: "group", ariaLabel: "Save the atlas" },
          saver("PNG", "Save the atlas as a picture", () => savePng("atlas.png", this.atlasSheet())),
          saver("SVG", "Save the atlas as vectors", () => saveText("atlas.svg", markup(this.atlasSheet()), "image/svg+xml")))),
      this.legend(), this.atlas.element, this.atlas.progress);
    return make("article", { class: "pane" },
      make("header", {}, quiet(text.about), quiet(text.origin), quiet(text.aboutStudy),
        quiet(text.continues ? `The text goes on: this is a window of ${text.size} tokens.` : ""),
        text.notice ? make("p", { class: "note" }, text.notice) : null),
      make("div", { class: "halves" }, atlas, head, this.pairs?.element ?? null));
  }

  legend() {
    this.means = make("p", { class: "quiet" });
    if (!this.study?.hasRoles) return this.means;
    const marks = Object.entries(this.study.marks).map(([role, [colour, letter]]) => {
      const box = make("i", {}, letter);
      box.style.background = colour;
      return make("span", {}, box, role);
    });
    return make("div", {}, this.means, make("p", { class: "roles" }, "Roles in the study: ", ...marks));
  }

  headSheet() {
    return headSheet(this.title.textContent, this.text.about, this.maps);
  }

  atlasSheet() {
    return atlasSheet(`Every head: ${this.means.textContent}`, this.text.about, this.atlas);
  }

  step(layers, heads) {
    const place = this.text.layers.indexOf(this.layer) + layers, head = this.head + heads;
    if (place >= 0 && place < this.text.layers.length && head >= -1 && head < this.text.heads) this.choose(this.text.layers[place], head);
  }

  // Where the layers of two models differ, the nearest that there is.
  async open() {
    const { text, state } = this;
    const place = text.layers.includes(state.layer) ? text.layers.indexOf(state.layer) : text.layers.length - 1;
    const head = Math.min(state.head, text.heads - 1), asked = (this.asked = `${place} ${head}`);
    if (head < 0) await text.loadLayer(place);
    else await text.load(place, head);
    if (this.asked !== asked) return;
    Object.assign(this, { place, head, layer: text.layers[place], attention: text.attention(place, head), cell: null, over: null });
    this.atlas.select(place, head);
    this.title.textContent = head < 0 ? `Layer ${this.layer}, mean of its heads` : `Layer ${this.layer}, head ${head}`;
    this.measure();
  }

  // Once a head is chosen, and whenever the threshold or the way to compare outputs changes.
  measure() {
    const { text, place, head } = this;
    this.normalised = text.normalised(place, head, this.how);
    const measured = head < 0 ? { lines: [], alike: [], standsOut: "" } : text.measuredOf(place, head);
    const limit = Math.fround(this.threshold), matrix = this.normalised;
    const shares = this.isText ? null : text.highShare(place, head);
    const largest = this.isText ? 1 : highest(matrix), often = shares && highest(shares);
    const weight = this.isText ? 1 : highest(this.attention);
    if (this.isText) this.high = text.high(matrix, this.threshold);
    const found = this.high?.found ?? [];
    this.maps.show({
      found: found.length < FEW ? found : [],
      normalised: matrix, attention: this.attention, labels: text.labels, lines: measured.lines, threshold: this.isText ? this.threshold : null,
      high: shares ? (k) => (shares[k] / often) * largest : (k) => (matrix[k] > limit ? matrix[k] : 0),
      belowSays: shares ? `how often a pair is high, the darkest ${(100 * often).toFixed(1)} %` : `only high pairs, above ${this.threshold.toFixed(2)}`,
      what: this.isText ? "tokens" : "positions", largest, largestWeight: weight, small: this.isText ? text.small : 0,
    });
    const kinds = { similarity: "similarity N", high: this.isText ? "high pairs" : "how often a pair is high", attention: "attention" };
    this.means.textContent = `${kinds[this.state.map]}${this.isText ? "" : ", mean over windows"}; ${this.state.scale === "one" ? "one colour scale" : "each on its own colour scale"}`;
    if (this.isText) this.measureText(measured);
    else this.tell(null, {}, measured);
    this.light();
  }

  measureText(measured) {
    const { text, place, head } = this;
    this.received = new Float64Array(text.size);
    for (let k = 0; k < this.attention.length; k++) this.received[k % text.size] += this.attention[k];
    this.pairs.show(this.name, this.normalised, this.high.found);
    const crowded = this.own && measured.crowded ? "Most pairs are high: this head singles nothing out." : "";
    this.standsOut.textContent = (this.own && measured.standsOut) || crowded;
    this.standsOut.hidden = !this.standsOut.textContent;
    const here = { ...this.high.numbers, ...(head < 0 ? {} : text.ownNumbers(place, head)) };
    this.tell(here, text.chances, measured);
  }

  tell(here, chances, measured) {
    const of = this.study?.of(this.layer, this.head) ?? null;
    this.told = numbers(here, chances, this.study, of);
    const focal = this.high?.focal.length ? make("p", {}, "Focal token: ", make("b", {}, quoted(this.text.labels[this.high.focal[0]]))) : null;
    const open = (layer, head) => this.choose(layer, head);
    this.numbersBox.replaceChildren(this.told.table);
    const list = [
      of?.role ? make("p", {}, "Role in the study: ", make("b", {}, of.role)) : null, focal,
      alike(measured.alike, "Most alike on this text (correlation of N)", open),
      alike(of?.alike ?? [], "Most alike in the study (difference of profiles, 0 for twins)", open),
    ];
    this.beside.replaceChildren(...list.filter(Boolean));
  }

  light() {
    if (!this.normalised) return;
    const token = this.token ?? this.over;
    this.maps.light(this.cell, token);
    if (!this.isText) return;
    const { text } = this, S = text.size, similar = this.state.by === "similarity";
    const partners = [];
    if (token !== null)
      for (let j = 0; j < S; j++) {
        const value = this.normalised[token * S + j];
        if (j !== token && text.part[j] && text.part[token] && value > Math.fround(this.threshold)) partners.push([j, value]);
      }
    partners.sort((a, b) => b[1] - a[1]);
    this.tokens.show({
      values: similar ? this.similarityOf(token) : this.attentionOf(token), what: similar ? "similarity" : "attention",
      chosen: token, lit: this.cell ?? (token === null ? [] : [token]), focal: similar && token === null ? this.high.focal : [], partners,
    });
    this.probe.textContent = this.says(token, partners.length);
  }

  similarityOf(token) {
    const S = this.text.size;
    if (token !== null) return this.normalised.subarray(token * S, (token + 1) * S);
    const most = Math.max(...this.high.count, 1);
    return Array.from(this.high.count, (count) => count / most);
  }

  attentionOf(token) {
    const S = this.text.size;
    if (token !== null) return this.attention.subarray(token * S, (token + 1) * S).map(Math.sqrt);
    const most = Math.max(...this.received);
    return Array.from(this.received, (value) => Math.sqrt(value / most));
  }

  says(token, partners) {
    const { text } = this, similar = this.state.by === "similarity", S = text.size;
    if (token === null)
      return similar
        ? "Colour: in how many high pairs each token is. Point at a token to see what is similar to it; a click holds it."
        : "Colour: how much attention each token receives. Point at a token to see where it attends; a click holds it.";
    const row = similar ? this.normalised : this.attention;
    const strongest = [...text.labels.keys()].filter((j) => j !== token || !similar).sort((a, b) => row[token * S + b] - row[token * S + a]).slice(0, 3);
    const number = (value) => (similar ? value.toFixed(2) : percent(value, text.small));
    const list = strongest.map((j) => `${quoted(text.labels[j])} ${number(row[token * S + j])}`).join(", ");
    const held = this.token === null ? "" : " · held, Escape lets go";
    return `${token} ${quoted(text.labels[token])}, in ${partners.toLocaleString("en")} high pairs, ${similar ? "is most similar to" : "attends most to"}: ${list}${held}`;
  }

  json() {
    const { text } = this;
    return JSON.stringify({
      model: text.model, about: text.about, layer: this.layer, head: this.head < 0 ? null : this.head, similarity: this.how, threshold: this.threshold,
      tokens: text.labels, numbers: this.told.rows.map((row) => Object.fromEntries(row.map((value, k) => [this.told.headings[k] || "column", value]))),
      pairs: this.pairs.rows, lines: this.head < 0 ? [] : text.measuredOf(this.place, this.head).lines,
    }, null, 1);
  }

  release() {
    if (this.token !== null) this.hold(this.token);
  }
}

function highest(matrix) {
  let largest = 0;
  for (const value of matrix) if (Math.abs(value) > largest) largest = Math.abs(value);
  return largest || 1;
}
