// The page: what is shared by all that it shows, kept in the address, and the one or two panes beneath.

import { whenTurned } from "./colour.js";
import { Sums, Text } from "./data.js";
import { choice, later, make } from "./dom.js";
import { Pane } from "./pane.js";
import { Form, ask, fetched } from "./server.js";
import { Study } from "./study.js";

document.documentElement.classList.add("scripted");

const START = { layer: null, head: null, threshold: null, similarity: null, token: null, map: "similarity", scale: "own", sort: "depth", by: "similarity" };
const NUMBERS = ["layer", "head", "threshold", "token", "length", "window"];
const LONGEST = 4000;

class Page {
  constructor(given) {
    this.given = given;
    this.study = given.study ? new Study(given.study) : null;
    this.panes = [];
    this.sources = [];
    this.state = { ...START };
    this.measureSoon = later(() => this.panes.forEach((pane) => pane.place !== undefined && pane.measure()));
  }

  async start() {
    const { given } = this;
    this.box = make("div", { class: "panes" });
    this.controls = make("div", { class: "controls", role: "group", ariaLabel: "What is shown" });
    document.getElementById("viewer").append(this.controls, this.box);
    this.restore();
    this.control();
    if (given.server) {
      this.form = new Form(given.server, (source, beside) => this.look(source, beside));
      this.controls.before(this.form.element);
      if (given.server.study) this.study = new Study(await ask("/api/study"));
      this.control();
      await this.lookAll();
    } else await this.put(0, new Text(given.text));
    document.addEventListener("keydown", (event) => event.key === "Escape" && this.panes.forEach((pane) => pane.release()));
    addEventListener("hashchange", () => this.wrote !== location.hash && this.turnTo());
    whenTurned(() => this.changed(true));
  }

  // ---- sources

  async lookAll() {
    const first = this.sources.length ? this.sources : [this.given.server.first];
    for (const [place, source] of first.entries()) if (source) await this.look(source, place > 0);
  }

  async look(source, beside) {
    const place = beside && this.panes.length ? 1 : 0;
    this.form.show(source);
    this.form.say(source.from === "text" ? `Looking at ${source.text.length.toLocaleString("en")} characters with ${source.model} …` : "Reading the study …");
    this.form.element.classList.add("busy");
    try {
      const packed = await fetched(source);
      this.sources = [...this.sources.slice(0, place), source];
      await this.put(place, packed.kind === "sums" ? new Sums(packed) : new Text(packed));
      this.form.say(packed.windows > 1 ? `Window ${source.window}; the text has ${packed.windows.toLocaleString("en")}, numbered from 0.` : "");
    } catch (problem) {
      this.form.say(problem.message, true);
    }
    this.form.element.classList.remove("busy");
  }

  // A pane in its place; the first one alone closes the second.
  async put(place, text) {
    const { state } = this;
    if (state.layer === null || state.head === null) [state.layer, state.head] = text.open ?? text.telling?.[0] ?? [text.layers.at(-1), 0];
    const study = this.study && text.fits !== false ? this.study : null;
    const pane = new Pane(text, study, state, (layer, head) => this.choose(layer, head), (token) => { if (place === 0) { state.token = token; this.remember(); } });
    if (place === 0 && text.kind !== "sums" && state.token < text.size) pane.token = state.token;
    this.panes = [...this.panes.slice(0, place), pane];
    this.box.replaceChildren(...this.panes.map(({ element }) => element));
    this.box.classList.toggle("two", this.panes.length > 1);
    this.control();
    await pane.open();
    this.remember();
  }

  choose(layer, head) {
    Object.assign(this.state, { layer, head });
    this.remember();
    for (const pane of this.panes) pane.open();
  }

  // atlas: whether its maps change too
  changed(atlas) {
    this.measureSoon();
    if (atlas)
      for (const pane of this.panes) {
        pane.atlas.arrange(pane.sort);
        pane.atlas.draw(pane.atlasWishes);
      }
    this.remember();
  }

  // ---- controls

  control() {
    const { state } = this, text = this.panes[0]?.text ?? this.given.text ?? { threshold: 0.3, similarity: "dot" };
    const set = (name, atlas) => (value) => { state[name] = value; this.changed(atlas); };
    const isText = text.kind !== "sums";
    const own = text.threshold ?? 0.3, output = make("output", {});
    const told = () => {
      const value = state.threshold ?? own;
      output.textContent = `${value.toFixed(2)}${value === own ? ", its own" : ""}`;
      range.setAttribute("aria-valuetext", output.textContent);
    };
    const settle = later(() => { if (state.map === "high") this.panes.forEach((pane) => pane.atlas.draw(pane.atlasWishes)); });
    const range = make("input", { type: "range", id: "threshold", min: 0.05, max: 0.95, step: 0.01, ariaLabel: "Threshold of high pairs", oninput: () => {
      const value = Number(range.value);
      state.threshold = Math.abs(value - own) < 1e-9 ? null : value;
      told();
      this.changed(false);
    }, onchange: settle });
    range.value = state.threshold ?? own;
    told();
    const columns = this.study?.columns.filter((column) => column.sorts).map((column) => [column.name, column.label]) ?? [];
    this.controls.replaceChildren(...[
      isText ? make("label", { class: "choice" }, make("span", {}, "High above"), range, output) : null,
      isText ? choice("Outputs compared by", [["dot", "dot product"], ["centred", "centred"], ["cosine", "cosine"]], state.similarity ?? text.similarity, (value) => { state.similarity = value === text.similarity ? null : value; this.changed(true); }, { id: "how" }) : null,
      choice("Small maps", [["similarity", "similarity"], ["high", "high pairs"], ["attention", "attention"]], state.map, set("map", true), { id: "small-maps" }),
      choice("Colours", [["own", "each its own scale"], ["one", "one scale"]], state.scale, set("scale", true), { id: "scales" }),
      columns.length ? choice("Sorted by", [["depth", "depth"], ...columns], state.sort, set("sort", true), { id: "sorting" }) : null,
      isText ? choice("Text coloured by", [["similarity", "similarity"], ["attention", "attention"]], state.by, set("by", false), { id: "by" }) : null,
    ].filter(Boolean));
  }

  // ---- the address

  remember() {
    const told = new URLSearchParams();
    for (const [name, value] of Object.entries(this.state)) if (value !== null && value !== START[name]) told.set(name, value);
    this.sources.forEach((source, place) => {
      for (const [name, value] of Object.entries(source)) told.set(`${place ? "beside." : ""}${name}`, value);
    });
    const hash = `#${told}`;
    if (hash.length > LONGEST) return;
    this.wrote = hash;
    try {
      history.replaceState(null, "", hash);
    } catch {
      this.wrote = null; // A frame without an address of its own keeps none.
    }
  }

  restore() {
    const told = new URLSearchParams(location.hash.slice(1)), sources = [{}, {}];
    Object.assign(this.state, START);
    for (const [key, value] of told) {
      const beside = key.startsWith("beside."), name = beside ? key.slice(7) : key;
      const read = NUMBERS.includes(name) ? Number(value) : value;
      if (Number.isNaN(read)) continue;
      if (name in START && !beside) this.state[name] = read;
      else sources[Number(beside)][name] = read;
    }
    const { threshold } = this.state;
    if (threshold !== null) this.state.threshold = Math.min(0.95, Math.max(0.05, threshold));
    this.sources = sources.filter(({ from }) => ["text", "example", "sums"].includes(from));
  }

  async turnTo() {
    this.restore();
    if (this.given.server) await this.lookAll();
    else {
      this.control();
      this.changed(true);
      this.panes.forEach((pane) => { pane.token = this.state.token; pane.open(); });
    }
  }
}

document.addEventListener("DOMContentLoaded", () => {
  const page = new Page(JSON.parse(document.getElementById("data").textContent));
  page.start().catch((problem) => {
    const viewer = document.getElementById("viewer");
    viewer.prepend(make("p", { class: "note", id: "problem" }, `This can't be drawn in this browser (${problem.message}); a newer one is needed.`));
    document.documentElement.classList.remove("scripted");
  });
});
