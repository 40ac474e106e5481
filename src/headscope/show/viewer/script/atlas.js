// All layers and heads as small maps; those of a whole layer stand first in its row.

import { make } from "./dom.js";
import { picture } from "./maps.js";

const SLICE = 14;
const MAPS = 64;

export class Atlas {
  // chosen(place, head): head -1 is the whole layer
  constructor(text, study, chosen) {
    Object.assign(this, { text, study, chosen, round: 0 });
    this.buttons = new Map();
    this.element = make("div", { class: "atlas", role: "grid", ariaLabel: "All heads. Arrow keys move from head to head and from layer to layer.", onkeydown: (event) => this.key(event) });
    this.progress = make("p", { class: "quiet read", role: "status" });
    for (let place = 0; place < text.layers.length; place++)
      for (let head = -1; head < text.heads; head++) this.buttons.set(`${place} ${head}`, this.button(place, head));
  }

  button(place, head) {
    const study = this.study?.of(this.text.layers[place], head);
    const name = head < 0 ? `layer ${this.text.layers[place]}, mean of its heads` : `layer ${this.text.layers[place]}, head ${head}`;
    const tag = make("span", { class: "tag" });
    const button = make("button", {
      type: "button", role: "gridcell", tabIndex: -1, title: study?.role ? `${name}: ${study.role}` : name, ariaLabel: study?.role ? `${name}: ${study.role}` : name,
      onclick: () => this.chosen(place, head),
    }, make("canvas", { width: MAPS, height: MAPS }), tag);
    if (study?.role) {
      button.style.setProperty("--role", study.mark[0]);
      button.classList.add("role");
      button.append(make("span", { class: "letter", ariaHidden: "true" }, study.mark[1]));
    }
    return Object.assign(button, { place, head, tag });
  }

  // By depth: a grid of layers and heads. By a column of the study: one head after the other, the largest first.
  arrange(sort) {
    const { text } = this, label = (words) => make("span", { role: "rowheader" }, String(words));
    this.sorted = sort !== "depth";
    this.element.classList.toggle("sorted", this.sorted);
    for (const button of this.buttons.values()) button.tag.textContent = "";
    if (!this.sorted) {
      this.element.style.gridTemplateColumns = `auto repeat(${text.heads + 1}, minmax(0, 1fr))`;
      const row = (...cells) => make("div", { role: "row" }, ...cells);
      const top = row(label(""), label("all"), ...Array.from({ length: text.heads }, (_, head) => label(head)));
      const lines = text.layers.map((layer, place) =>
        row(label(layer), ...Array.from({ length: text.heads + 1 }, (_, k) => this.buttons.get(`${place} ${k - 1}`))));
      this.element.replaceChildren(top, ...lines);
      this.order = [...this.buttons.values()];
      return;
    }
    const value = ({ place, head }) => this.study.of(text.layers[place], head)?.values[sort] ?? NaN;
    const known = (button) => (Number.isNaN(value(button)) ? -Infinity : value(button));
    this.order = [...this.buttons.values()].filter(({ head }) => head >= 0).sort((a, b) => known(b) - known(a) || 0);
    this.element.style.gridTemplateColumns = "";
    for (const button of this.order)
      button.tag.textContent = `${text.layers[button.place]}.${button.head} · ${this.study.of(text.layers[button.place], button.head)?.texts[sort] ?? "–"}`;
    this.element.replaceChildren(...this.order);
  }

  select(place, head) {
    for (const button of this.buttons.values()) {
      const selected = button.place === place && button.head === head;
      button.setAttribute("aria-selected", selected);
      button.tabIndex = selected ? 0 : -1;
    }
  }

  // kind: similarity, high or attention. Drawn in slices, so that the page stays responsive; a later call ends an earlier.
  async draw({ kind, how, threshold, oneScale }) {
    const round = ++this.round, { text } = this;
    const started = performance.now(), waiting = [];
    let slice = started, done = 0;
    const pause = async () => {
      if (performance.now() - slice < SLICE) return;
      if (performance.now() - started > 400) this.progress.textContent = `Drawing the atlas: ${done} of ${this.buttons.size}`;
      await new Promise((resolve) => setTimeout(resolve));
      slice = performance.now();
    };
    let largest = 0;
    for (let place = 0; place < text.layers.length; place++) {
      for (let head = 0; head <= text.heads; head++) {
        const which = head === text.heads ? -1 : head;  // The mean comes when its heads are at hand.
        if (which >= 0) await text.load(place, which);
        if (round !== this.round) return;
        const small = this.small(place, which, kind, how, threshold);
        largest = Math.max(largest, small.largest);
        if (oneScale) waiting.push([place, which, small]);
        else this.put(place, which, kind, small, small.largest);
        done++;
        await pause();
        if (round !== this.round) return;
      }
    }
    for (const [place, head, small] of waiting) this.put(place, head, kind, small, largest);
    this.progress.textContent = "";
  }

  // A map of at most MAPS cells a side: of several cells the one farthest from 0, so that no pair is lost.
  small(place, head, kind, how, threshold) {
    const { text } = this, S = text.size, side = Math.min(S, MAPS), limit = Math.fround(threshold);
    const matrix = kind === "attention" ? text.attention(place, head)
      : kind === "high" && text.kind === "sums" ? text.highShare(place, head) : text.normalised(place, head, how);
    const values = new Float32Array(side * side), high = kind === "high" && text.kind !== "sums";
    let largest = 0;
    const cell = Uint8Array.from({ length: S }, (_, k) => Math.floor((k * side) / S));
    for (let i = 0, k = 0; i < S; i++)
      for (let j = 0; j < S; j++, k++) {
        const value = high ? +(matrix[k] > limit) : matrix[k], at = cell[i] * side + cell[j];
        if (Math.abs(value) > Math.abs(values[at])) values[at] = value;
      }
    for (const value of values) largest = Math.max(largest, Math.abs(value));
    return { side, values, largest };
  }

  put(place, head, kind, { side, values }, largest) {
    const canvas = this.buttons.get(`${place} ${head}`).querySelector("canvas"), context = canvas.getContext("2d");
    context.imageSmoothingEnabled = false;
    context.drawImage(picture(side, (k) => values[k], kind === "attention" ? "attention" : "similarity", largest), 0, 0, MAPS, MAPS);
  }

  key(event) {
    const [down, right] = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1] }[event.key] ?? [0, 0];
    if (!down && !right) return;
    event.preventDefault();
    const now = this.order.find((button) => button.tabIndex === 0) ?? this.order[0];
    const wide = this.sorted ? Math.max(1, this.order.filter((button) => button.offsetTop === this.order[0].offsetTop).length) : this.text.heads + 1;
    const next = this.sorted
      ? this.order[this.order.indexOf(now) + down * wide + right]
      : this.buttons.get(`${now.place + down} ${now.head + right}`);
    if (!next) return;
    this.chosen(next.place, next.head);
    next.focus();
  }
}
