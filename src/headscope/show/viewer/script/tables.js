// Tables of a head: its high pairs, its numbers beside those of a study, the heads most like it.

import { make, table } from "./dom.js";
import { copied, saveText } from "./saving.js";

const FIRST = 30, MORE = 1000;

const COLUMNS = [
  { name: "i", label: "i", number: true },
  { name: "token_i", label: "token" },
  { name: "j", label: "j", number: true },
  { name: "token_j", label: "token" },
  { name: "distance", label: "distance", number: true },
  { name: "value", label: "N", number: true },
  { name: "same_sentence", label: "sentence" },
  { name: "equal", label: "equal" },
];

const field = (value) => (/[",\n\r]/.test(value) ? `"${String(value).replaceAll('"', '""')}"` : String(value));
export const csv = (headings, rows) => [headings, ...rows].map((row) => row.map(field).join(",")).join("\n") + "\n";

export class PairTable {
  // pointed([i, j]): null when none is; held(i)
  constructor(text, pointed, held) {
    Object.assign(this, { text, sort: "value", descending: true });
    this.heading = make("h3", {}, "High pairs");
    const pairOf = (event) => this.rows[event.target.closest("tr").sectionRowIndex];
    this.body = make("tbody", {
      onpointerleave: () => pointed(null),
      onpointerover: (event) => pointed([pairOf(event).i, pairOf(event).j]),
      onclick: (event) => held(pairOf(event).i),
    });
    this.heads = COLUMNS.map((column) => make("th", { class: column.number ? "number" : "", scope: "col" },
      make("button", { type: "button", onclick: () => this.sortBy(column.name) }, column.label)));
    this.more = make("button", { type: "button", onclick: () => this.add(MORE) });
    const copy = make("button", { type: "button", textContent: "Copy", onclick: async () => {
      copy.textContent = (await copied(this.lines("\t"))) ? "Copied" : "Can't copy here";
      setTimeout(() => (copy.textContent = "Copy"), 1500);
    } });
    this.element = make("section", { class: "pairs", ariaLabel: "High pairs" },
      make("div", { class: "line" }, this.heading, copy, make("button", { type: "button", textContent: "CSV", onclick: () => saveText(`${this.name}-pairs.csv`, this.csv(), "text/csv") })),
      make("div", { class: "wide" }, make("table", { class: "sortable" }, make("thead", {}, make("tr", {}, ...this.heads)), this.body)), this.more);
  }

  show(name, matrix, found) {
    const { text } = this, S = text.size;
    this.name = name;
    this.rows = found.map((k) => {
      const i = Math.floor(k / S), j = k % S;
      return { i, j, token_i: text.labels[i], token_j: text.labels[j], distance: j - i, value: matrix[k],
        same_sentence: text.inOneSentence(i, j), equal: text.ids[i] === text.ids[j] };
    });
    this.heading.textContent = `${found.length.toLocaleString("en")} high pairs`;
    this.arrange();
  }

  sortBy(name) {
    this.descending = this.sort === name ? !this.descending : !["i", "j", "token_i", "token_j"].includes(name);
    this.sort = name;
    this.arrange();
  }

  arrange() {
    const { sort, descending } = this, sign = descending ? -1 : 1;
    this.heads.forEach((head, k) => {
      if (COLUMNS[k].name === sort) head.setAttribute("aria-sort", descending ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    const order = typeof this.rows[0]?.[sort] === "string" ? (a, b) => a[sort].localeCompare(b[sort]) : (a, b) => a[sort] - b[sort];
    this.rows.sort((a, b) => sign * order(a, b) || a.i - b.i || a.j - b.j);
    this.body.replaceChildren();
    this.add(FIRST);
  }

  add(count) {
    const there = this.body.rows.length, isolated = (value) => make("bdi", {}, String(value));
    this.body.append(...this.rows.slice(there, there + count).map((pair) =>
      make("tr", {}, ...COLUMNS.map(({ name, number }) => make("td", { class: number ? "number" : "" }, isolated(told(name, pair[name])))))));
    const left = this.rows.length - this.body.rows.length;
    this.more.hidden = left <= 0;
    this.more.textContent = `Show ${Math.min(left, MORE).toLocaleString("en")} more`;
  }

  lines(between) {
    return [COLUMNS.map(({ name }) => name), ...this.values()].map((row) => row.join(between)).join("\n") + "\n";
  }

  values() {
    return this.rows.map((pair) => COLUMNS.map(({ name }) => (name === "value" ? pair.value.toFixed(4) : pair[name])));
  }

  csv() {
    return csv(COLUMNS.map(({ name }) => name), this.values());
  }
}

function told(name, value) {
  if (name === "value") return value.toFixed(2);
  if (name === "same_sentence") return value ? "same" : "";
  return name === "equal" ? (value ? "equal" : "") : value;
}

// As the tables of a study show numbers.
export function shown(value, unit) {
  if (value === undefined || value === null || Number.isNaN(value)) return "–";
  if (unit === "share") return (100 * value).toFixed(1);
  if (unit === "difference") return `${value < 0 ? "" : "+"}${value.toFixed(3)}`;
  if (unit === "tokens") return value.toFixed(1);
  return Number.isInteger(value) || value >= 1000 ? Math.round(value).toLocaleString("en") : value.toFixed(1);
}

// The columns that are known of one text, where there is no study to say what they are called.
const ALONE = [
  ["pairs_per_window", "high pairs", "count"],
  ["mean_distance", "mean distance", "tokens"],
  ["same_sentence_probability", "same sentence", "share"],
  ["repeat_probability", "repeated token", "share"],
  ["focal_share", "with the focal token", "share"],
  ["attention_self", "attention on itself", "share"],
  ["attention_previous", "on the previous", "share"],
  ["attention_next", "on the next", "share"],
  ["lines_per_window", "attention lines", "count"],
].map(([name, label, unit]) => ({ name, label, unit, definition: "" }));

// here: the numbers of this text, null where there is none; chances: what chance gives of them
export function numbers(here, chances, study, of) {
  const wordy = (column) => (column.unit === "share" ? `${column.label}, %` : column.label);
  const known = study && of ? study.columns.filter((column) => column.overview || column.name in (here ?? {})) : ALONE;
  const extra = study && of ? study.beside : [];
  const headings = [{ label: "" }];
  if (here) headings.push({ label: "this text", number: true }, { label: "chance here", number: true, title: "The same among all pairs of this text" });
  if (of) headings.push({ label: "study", number: true }, { label: "95 %", number: true, title: "Interval over texts" }, ...extra.map(({ label }) => ({ label, number: true })));
  const rows = known.filter((column) => (here && column.name in here) || (of && of.texts[column.name] !== "–")).map((column) => [
    wordy(column),
    ...(here ? [shown(here[column.name], column.unit), column.name in chances ? shown(chances[column.name], column.unit) : ""] : []),
    ...(of ? [of.texts[column.name], of.intervals[column.name], ...extra.map(({ name }) => of.beside[name][column.name])] : []),
  ]);
  const made = table(headings, rows);
  known.forEach((column) => {
    const row = [...made.tBodies[0].rows].find((one) => one.cells[0].textContent === wordy(column));
    if (row) row.cells[0].title = column.definition;
  });
  return { table: made, headings: headings.map(({ label }) => label), rows };
}

export function alike(list, what, chosen) {
  if (!list.length) return null;
  const links = list.map(([layer, head, value]) => make("button", { type: "button", onclick: () => chosen(layer, head) }, `layer ${layer}, head ${head} `, make("b", {}, value.toFixed(2))));
  return make("p", { class: "alike" }, `${what}: `, ...links);
}
