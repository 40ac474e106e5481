"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const S = data.labels.length;
  const FIRST_ROWS = 25;
  const byId = (id) => document.getElementById(id);
  const spans = new Map();
  for (const span of document.querySelectorAll("#text [data-token]")) spans.set(Number(span.dataset.token), span);
  const order = [...spans.keys()];
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const state = { place: data.layers.indexOf(data.layer), head: data.head, pinned: null, over: null, by: "similarity" };
  let current = null;  // the matrices of the chosen head

  // ---- the matrices of a head, see page.py

  const unpacked = new Map();

  async function matrices(place, head) {
    const key = place * data.heads + head;
    if (!unpacked.has(key)) {
      const packed = Uint8Array.from(atob(data.measured[place][head].matrices), (c) => c.charCodeAt(0));
      const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
      const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
      const half = (S * (S - 1)) / 2;
      unpacked.set(key, {
        similarity: squared(bytes.subarray(0, half), bytes.subarray(half + S * S)),
        attention: weights(bytes.subarray(half, half + S * S)),
      });
    }
    return unpacked.get(key);
  }

  function squared(bytes, more) {
    const low = data.threshold + 1, high = 1 - data.threshold;
    const matrix = new Float32Array(S * S), isHigh = new Uint8Array(S * S);
    let place = 0, found = 0;
    for (let i = 0; i < S; i++) {
      for (let j = i + 1; j < S; j++) {
        const byte = bytes[place++];
        const value = byte < 128 ? -1 + (byte / 63) * low
          : data.threshold + (((byte - 128) * 256 + more[found++]) / 32767) * high;
        matrix[i * S + j] = matrix[j * S + i] = value;
        isHigh[i * S + j] = isHigh[j * S + i] = byte >= 128 ? 1 : 0;
      }
    }
    return { matrix, isHigh };
  }

  function weights(bytes) {
    const matrix = new Float32Array(S * S);
    for (let k = 0; k < matrix.length; k++) matrix[k] = (bytes[k] / 63) ** 2;
    return matrix;
  }

  // ---- colours: from the paper through a hue to its strongest shade

  function ramps() {
    const night = dark.matches;
    const paper = night ? [21, 24, 29] : [255, 255, 255];
    const ramp = (day, evening) => [paper, ...(night ? evening : day)];
    return {
      similar: ramp([[245, 158, 66], [110, 40, 0]], [[200, 95, 20], [255, 222, 180]]),
      unlike: ramp([[110, 170, 225], [15, 60, 115]], [[50, 105, 170], [190, 220, 250]]),
      attend: ramp([[150, 130, 235], [36, 16, 92]], [[105, 80, 215], [228, 220, 255]]),
    };
  }

  function shade(ramp, strength) {
    const t = Math.min(Math.max(strength, 0), 1) * 2;
    const [from, to, part] = t < 1 ? [ramp[0], ramp[1], t] : [ramp[1], ramp[2], t - 1];
    return from.map((value, k) => value + (to[k] - value) * part);
  }

  // ---- the maps

  const maps = { similarity: { canvas: byId("similarity") }, attention: { canvas: byId("attention") } };

  function paint() {
    const colours = ramps();
    const { matrix } = current.similarity;
    image(maps.similarity, (k) => shade(matrix[k] < 0 ? colours.unlike : colours.similar, Math.abs(matrix[k])));
    image(maps.attention, (k) => shade(colours.attend, Math.sqrt(current.attention[k])));
    scale(byId("similarity-scale"), [[0, "−1"], [0.25, "−0.5"], [0.5, "0"], [0.75, "0.5"], [1, "1"]],
      (t) => shade(t < 0.5 ? colours.unlike : colours.similar, Math.abs(2 * t - 1)));
    scale(byId("attention-scale"), [[0, "0"], [0.2, "4 %"], [0.5, "25 %"], [0.7, "49 %"], [1, "100 %"]],
      (t) => shade(colours.attend, t));
    draw();
  }

  function image(map, colour) {
    map.image = document.createElement("canvas");
    map.image.width = map.image.height = S;
    const context = map.image.getContext("2d");
    const pixels = context.createImageData(S, S);
    for (let k = 0; k < S * S; k++) {
      const [red, green, blue] = colour(k);
      pixels.data.set([red, green, blue, 255], 4 * k);
    }
    context.putImageData(pixels, 0, 0);
  }

  function scale(element, ticks, colour) {
    const stops = Array.from({ length: 21 }, (_, k) => `rgb(${colour(k / 20).map(Math.round).join(" ")})`);
    element.style.background = `linear-gradient(90deg, ${stops.join(", ")})`;
    element.replaceChildren(...ticks.map(([place, label]) => {
      const tick = document.createElement("span");
      tick.style.left = `${100 * place}%`;
      tick.textContent = label;
      return tick;
    }));
  }

  function draw(pair = null) {
    for (const [name, { canvas, image }] of Object.entries(maps)) {
      const width = Math.max(1, Math.round(canvas.clientWidth * (window.devicePixelRatio || 1)));
      if (canvas.width !== width) canvas.width = canvas.height = width;
      const context = canvas.getContext("2d"), cell = width / S;
      context.imageSmoothingEnabled = false;
      context.drawImage(image, 0, 0, width, width);
      const ink = getComputedStyle(document.documentElement).getPropertyValue("--chosen");
      context.fillStyle = context.strokeStyle = ink;
      if (name === "attention") {
        for (const line of chosen().lines) context.fillRect(line * cell, 0, Math.max(cell, 2), width / 40);
      }
      const token = state.over ?? state.pinned;
      context.lineWidth = Math.max(1, width / 500);
      if (pair) context.strokeRect(pair[1] * cell - 2, pair[0] * cell - 2, cell + 4, cell + 4);
      else if (token !== null) context.strokeRect(-2, token * cell, width + 4, cell);
    }
  }

  function pointed(canvas, event) {
    const box = canvas.getBoundingClientRect();
    const place = (value, from, size) => Math.min(S - 1, Math.max(0, Math.floor(((value - from) / size) * S)));
    return [place(event.clientY, box.top, box.height), place(event.clientX, box.left, box.width)];
  }

  // ---- the text

  function colourText() {
    const token = state.over ?? state.pinned;
    const similarity = state.by === "similarity";
    const strongest = Number(getComputedStyle(document.documentElement).getPropertyValue("--strongest"));
    const values = similarity ? similarityOf(token) : attentionOf(token);
    for (const [index, span] of spans) {
      const hue = similarity ? (values[index] < 0 ? "--unlike" : "--similar") : "--attend";
      const alpha = (Math.abs(values[index]) * strongest).toFixed(3);
      span.style.background = `rgba(var(${hue}), ${alpha})`;
      span.classList.toggle("chosen", index === token);
      span.classList.toggle("focal", similarity && token === null && chosen().focal.includes(index));
    }
  }

  function similarityOf(token) {
    const { matrix, isHigh } = current.similarity;
    if (token !== null) return matrix.subarray(token * S, (token + 1) * S);
    const pairs = Array.from({ length: S }, (_, i) => isHigh.subarray(i * S, (i + 1) * S).reduce((a, b) => a + b, 0));
    const most = Math.max(...pairs, 1);
    return pairs.map((count) => count / most);
  }

  function attentionOf(token) {
    if (token !== null) return current.attention.subarray(token * S, (token + 1) * S).map(Math.sqrt);
    const received = new Float32Array(S);
    for (let k = 0; k < S * S; k++) received[k % S] += current.attention[k];
    const most = Math.max(...received);
    return received.map((value) => Math.sqrt(value / most));
  }

  function told(token) {
    if (token === null) {
      return state.by === "similarity"
        ? "Shown: in how many high pairs each token is. Point at a token to see what is similar to it."
        : "Shown: how much attention each token receives. Point at a token to see where it attends.";
    }
    const row = state.by === "similarity" ? current.similarity.matrix : current.attention;
    const strongest = [...data.labels.keys()].filter((j) => j !== token || state.by === "attention")
      .sort((a, b) => row[token * S + b] - row[token * S + a]).slice(0, 3);
    const list = strongest.map((j) => `${quoted(j)} ${number(row[token * S + j])}`).join(", ");
    return `${quoted(token)} (${token}) ${state.by === "similarity" ? "is most similar to" : "attends most to"}: ${list}`;
  }

  const quoted = (token) => `\u2068“${data.labels[token]}”\u2069`;
  const number = (value) => (state.by === "similarity" ? value.toFixed(2) : `${(100 * value).toFixed(0)} %`);

  function lookAt() {
    colourText();
    byId("probe").textContent = told(state.over ?? state.pinned);
    draw();
  }

  function pin(token) {
    state.pinned = state.pinned === token ? null : token;
    state.over = null;
    lookAt();
  }

  const text = byId("text");
  const tokenAt = (event) => {
    const span = event.target.closest("[data-token]");
    return span ? Number(span.dataset.token) : null;
  };
  text.addEventListener("pointermove", (event) => {
    if (event.pointerType === "touch") return;
    const token = tokenAt(event);
    if (token !== state.over) { state.over = token; lookAt(); }
  });
  text.addEventListener("pointerleave", () => { state.over = null; lookAt(); });
  text.addEventListener("click", (event) => { const token = tokenAt(event); if (token !== null) pin(token); });
  text.addEventListener("keydown", (event) => {
    const onwards = getComputedStyle(text).direction === "rtl" ? -1 : 1;
    const step = { ArrowRight: onwards, ArrowLeft: -onwards }[event.key];
    if (event.key === "Escape") state.pinned = null;
    else if (step) {
      const place = state.pinned === null ? (step > 0 ? -1 : order.length) : order.indexOf(state.pinned);
      state.pinned = order[Math.min(Math.max(place + step, 0), order.length - 1)];
      spans.get(state.pinned).scrollIntoView({ block: "nearest" });
    } else return;
    event.preventDefault();
    state.over = null;
    lookAt();
  });
  for (const [name, { canvas }] of Object.entries(maps)) {
    canvas.addEventListener("pointermove", (event) => {
      const [i, j] = pointed(canvas, event);
      const value = name === "similarity" ? current.similarity.matrix[i * S + j] : current.attention[i * S + j];
      const what = name === "similarity" ? (i === j ? "itself" : value.toFixed(2)) : `${(100 * value).toFixed(0)} %`;
      byId(`${name}-read`).textContent = `${i} ${quoted(i)}, ${j} ${quoted(j)}: ${what}`;
      draw([i, j]);
    });
    canvas.addEventListener("pointerleave", () => { byId(`${name}-read`).textContent = ""; draw(); });
    canvas.addEventListener("click", (event) => {
      const [i] = pointed(canvas, event);
      byId("text").querySelector(`[data-token="${i}"]`)?.scrollIntoView({ block: "nearest" });
      pin(i);
    });
  }

  // ---- the pairs

  function pairs() {
    const { matrix, isHigh } = current.similarity;
    const found = [];
    for (let i = 0; i < S; i++) for (let j = i + 1; j < S; j++) if (isHigh[i * S + j]) found.push([i, j, matrix[i * S + j]]);
    return found.sort((a, b) => b[2] - a[2]);
  }

  function list(all) {
    const found = pairs();
    const shown = all ? found : found.slice(0, FIRST_ROWS);
    byId("pairs").replaceChildren(...shown.map(([i, j, value]) => {
      const row = document.createElement("tr");
      const together = data.sentences[i] === data.sentences[j] && data.sentences[i] >= 0;
      const notes = [together ? "same sentence" : "", data.ids[i] === data.ids[j] ? "equal" : ""];
      row.append(cell(i, "number"), cell(data.labels[i]), cell(j, "number"), cell(data.labels[j]),
        cell(j - i, "number"), cell(value.toFixed(2), "number"), cell(notes.filter(Boolean).join(", ")));
      row.addEventListener("pointerenter", () => draw([i, j]));
      row.addEventListener("click", () => pin(i));
      return row;
    }));
    byId("more").hidden = shown.length === found.length;
    byId("more").textContent = `Show all ${found.length.toLocaleString("en")}`;
  }

  function cell(value, kind = "") {
    const made = document.createElement("td"), isolated = document.createElement("bdi");
    made.className = kind;
    isolated.textContent = value;
    made.append(isolated);
    return made;
  }
  byId("pairs").addEventListener("pointerleave", () => draw());
  byId("more").addEventListener("click", () => list(true));

  // ---- the choice of a head

  const chosen = () => data.measured[state.place][state.head];
  const buttons = data.layers.map(() => []);

  function grid() {
    const heads = byId("heads");
    heads.style.gridTemplateColumns = `2rem repeat(${data.heads}, minmax(0, 1fr))`;
    const label = (value) => Object.assign(document.createElement("span"), { textContent: value });
    const top = row([label("layer"), ...Array.from({ length: data.heads }, (_, head) => label(head))]);
    const every = (S * (S - 1)) / 2;
    const rows = data.layers.map((layer, place) => row([label(layer), ...data.measured[place].map((measured, head) => {
      const button = document.createElement("button");
      button.type = "button";
      button.setAttribute("role", "gridcell");
      const name = `Layer ${layer}, head ${head}: ${measured.pairs.toLocaleString("en")} high pairs`;
      button.title = name;
      button.setAttribute("aria-label", name);
      button.style.background = `rgba(var(--similar), ${Math.sqrt(measured.pairs / every).toFixed(3)})`;
      button.addEventListener("click", () => choose(place, head));
      buttons[place].push(button);
      return button;
    })]));
    heads.replaceChildren(top, ...rows);
    heads.addEventListener("keydown", (event) => {
      const [down, right] = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1] }[event.key] ?? [0, 0];
      if (!down && !right) return;
      event.preventDefault();
      const place = Math.min(Math.max(state.place + down, 0), data.layers.length - 1);
      const head = Math.min(Math.max(state.head + right, 0), data.heads - 1);
      choose(place, head).then(() => buttons[place][head].focus());
    });
  }

  function row(cells) {
    const made = document.createElement("div");
    made.setAttribute("role", "row");
    made.append(...cells);
    return made;
  }

  async function choose(place, head) {
    Object.assign(state, { place, head });
    const ready = await matrices(place, head);
    if (state.place !== place || state.head !== head) return;
    current = ready;
    for (const [p, line] of buttons.entries()) for (const [h, button] of line.entries()) {
      const selected = p === place && h === head;
      button.setAttribute("aria-selected", selected);
      button.tabIndex = selected ? 0 : -1;
    }
    byId("chosen").textContent = `Layer ${data.layers[place]}, head ${head}`;
    const told = { "stands-out": "standsOut", about: "about", "about-lines": "aboutLines", "in-study": "inStudy" };
    for (const [id, name] of Object.entries(told)) {
      byId(id).textContent = chosen()[name];
      byId(id).hidden = !chosen()[name];
    }
    list(false);
    paint();
    lookAt();
  }

  for (const choice of document.querySelectorAll('input[name="by"]')) {
    choice.addEventListener("change", () => { state.by = choice.value; lookAt(); });
  }
  dark.addEventListener("change", () => { paint(); colourText(); });
  new ResizeObserver(() => current && draw()).observe(maps.similarity.canvas);
  grid();
  choose(state.place, state.head).catch((problem) => {
    byId("problem").textContent = `The maps can't be drawn in this browser (${problem.message}); a newer one is needed.`;
    byId("problem").hidden = false;
  });
})();
