// What only a server can do: run the model on another text.

import { choice, make } from "./dom.js";

const token = new URLSearchParams(location.search).get("token") ?? "";

export async function ask(path, body = null) {
  const asked = { headers: { "X-Headscope-Token": token } };
  if (body) Object.assign(asked, { method: "POST", body: JSON.stringify(body) }, { headers: { ...asked.headers, "Content-Type": "application/json" } });
  let answer;
  try {
    answer = await fetch(path, asked);
  } catch {
    throw new Error("The server does not answer; it may have been stopped.");
  }
  const told = await answer.json().catch(() => ({ problem: `The server answered ${answer.status}.` }));
  if (!answer.ok) throw new Error(told.problem ?? `The server answered ${answer.status}.`);
  return told;
}

// The source of a pane as the address names it -> what it shows.
export function fetched(source) {
  if (source.from === "example") return ask("/api/example");
  if (source.from === "sums") return ask("/api/sums");
  return ask("/api/look", { text: source.text, model: source.model, length: source.length, window: source.window });
}

// looked(source, beside): a text was asked for
export class Form {
  constructor(about, looked) {
    Object.assign(this, { about, looked });
    const { models, longest, study } = about;
    this.area = make("textarea", { rows: 2, id: "given", maxLength: about.limit, placeholder: "Type or paste a text", ariaLabel: "Text", onkeydown: (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) this.send(false);
    } });
    this.file = make("input", { type: "file", accept: ".txt,text/plain", ariaLabel: "A text file", onchange: () => this.read() });
    this.model = choice("Model", models.map(({ name, label }) => [name, label]), models[0]?.name, () => {});
    const lengths = [...new Set([64, 128, 256, 512, longest])].filter((length) => length <= longest).sort((a, b) => a - b);
    this.length = choice("Tokens", lengths.map((length) => [length, length]), lengths.findLast((length) => length <= 128), () => {});
    this.window = make("input", { type: "number", min: 0, value: 0, title: "Which window of that many tokens, numbered from 0", ariaLabel: "Window of the text" });
    this.status = make("p", { class: "status", role: "status" });
    const button = (label, title, onclick) => make("button", { type: "button", textContent: label, title, onclick });
    const open = (from) => (event) => looked({ from }, event.shiftKey);
    this.element = make("form", { class: "ask", onsubmit: (event) => { event.preventDefault(); this.send(false); } },
      models.length ? this.area : null,
      make("div", { class: "line" },
        ...(models.length ? [this.model, this.length, make("label", { class: "choice" }, make("span", {}, "Window"), this.window),
          make("button", { type: "submit", class: "go", textContent: "Look", title: "Ctrl+Enter" }),
          button("Look, beside this", "A second text, or a second model, side by side", () => this.send(true)), make("label", { class: "choice" }, make("span", {}, "File"), this.file)] : []),
        study?.example ? button("The study's example", "The one text that the study keeps", open("example")) : null,
        study?.sums ? button("The study's sums", "All windows of the study, added up", open("sums")) : null,
        study?.sums ? button("Sums beside this", "All windows of the study, beside what is shown", () => looked({ from: "sums" }, true)) : null),
      this.status);
  }

  async read() {
    const file = this.file.files[0];
    if (!file) return;
    if (file.size > this.about.limit) return this.say(`${file.name} is too large: a text may have up to ${this.about.limit.toLocaleString("en")} characters.`, true);
    this.area.value = await file.text();
    this.send(false);
  }

  send(beside) {
    if (!this.area.value.trim()) return this.say("Type or paste a text first.", true);
    this.looked({
      from: "text", text: this.area.value, model: this.model.lastChild.value, length: Number(this.length.lastChild.value),
      window: Number(this.window.value),
    }, beside);
  }

  show(source) {
    if (source.from !== "text") return;
    this.area.value = source.text;
    this.model.lastChild.value = source.model;
    this.length.lastChild.value = source.length;
    this.window.value = source.window;
  }

  say(words, problem = false) {
    this.status.textContent = words;
    this.status.classList.toggle("problem", problem);
  }
}
