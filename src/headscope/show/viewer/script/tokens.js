// The text, every token in its place: coloured by the head, with arcs from a token to those it is in high pairs with.

import { variable } from "./colour.js";
import { SVG, make } from "./dom.js";

const ARCS = 60;

export class Tokens {
  // pointed(token): null when none is; held(token)
  constructor(text, pointed, held) {
    Object.assign(this, { text, held });
    this.spans = new Map();
    this.arcs = document.createElementNS(SVG, "svg");
    this.arcs.setAttribute("class", "arcs");
    this.arcs.setAttribute("aria-hidden", "true");
    this.flow = make("div", { class: "flow", dir: "auto" });
    for (const [characters, token] of text.segments) this.flow.append(token === null ? characters : this.span(characters, token));
    this.element = make("div", {
      class: "text", tabIndex: 0, role: "application",
      ariaLabel: "The text. Left and right arrow keys choose a token, Enter holds it, Escape lets it go.",
      onpointermove: (event) => event.pointerType !== "touch" && pointed(this.tokenOf(event)),
      onpointerleave: () => pointed(null),
      onclick: (event) => this.tokenOf(event) !== null && held(this.tokenOf(event)),
      onkeydown: (event) => this.key(event),
    }, this.flow, this.arcs);
    this.order = [...this.spans.keys()];
    new ResizeObserver(() => this.drawArcs()).observe(this.flow);
  }

  span(characters, token) {
    const special = this.text.special[token];
    const made = make("span", special ? { class: "special", dir: "ltr" } : {}, characters);
    made.dataset.token = token;
    this.spans.set(token, made);
    return made;
  }

  tokenOf(event) {
    const span = event.target.closest?.("[data-token]");
    return span ? Number(span.dataset.token) : null;
  }

  key(event) {
    const onwards = getComputedStyle(this.flow).direction === "rtl" ? -1 : 1;
    const step = { ArrowRight: onwards, ArrowLeft: -onwards }[event.key];
    if (!step) return;
    event.preventDefault();
    const place = this.chosen === null ? (step > 0 ? -1 : this.order.length) : this.order.indexOf(this.chosen);
    const token = this.order[Math.min(Math.max(place + step, 0), this.order.length - 1)];
    this.scrollTo(token);
    if (token !== this.chosen) this.held(token);
  }

  scrollTo(token) {
    const span = this.spans.get(token), box = this.element;
    if (!span) return;
    const top = span.offsetTop, bottom = top + span.offsetHeight;
    if (top < box.scrollTop) box.scrollTop = top - 8;
    else if (bottom > box.scrollTop + box.clientHeight) box.scrollTop = bottom - box.clientHeight + 8;
  }

  // values: a number a token, -1 to 1; partners: [token, N] of the chosen one, the most alike first
  show({ values, what, chosen, lit, focal, partners }) {
    this.chosen = chosen;
    this.partners = partners.slice(0, ARCS);
    const strongest = Number(variable("--strongest"));
    for (const [token, span] of this.spans) {
      const hue = what === "attention" ? "--attend" : values[token] < 0 ? "--unlike" : "--similar";
      span.style.background = `rgba(var(${hue}), ${(Math.abs(values[token]) * strongest).toFixed(3)})`;
      span.classList.toggle("chosen", lit.includes(token));
      span.classList.toggle("focal", focal.includes(token));
    }
    this.drawArcs();
  }

  drawArcs() {
    this.arcs.replaceChildren();
    this.arcs.setAttribute("height", this.flow.offsetHeight);
    const from = this.spans.get(this.chosen);
    if (!from || !this.partners) return;
    const middle = (span) => [span.offsetLeft + span.offsetWidth / 2, span.offsetTop + 2];
    const [x, y] = middle(from);
    for (const [token, value] of this.partners) {
      const span = this.spans.get(token);
      if (!span) continue;
      const [to, down] = middle(span), path = document.createElementNS(SVG, "path");
      const height = Math.min(40, 8 + Math.abs(to - x) / 6 + Math.abs(down - y) / 8);
      path.setAttribute("d", `M${x},${y} C${x},${y - height} ${to},${down - height} ${to},${down}`);
      path.setAttribute("stroke-opacity", Math.max(0.15, value).toFixed(2));
      this.arcs.append(path);
    }
  }
}
