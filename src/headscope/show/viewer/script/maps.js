// Two maps of one head, linked: what is pointed at, held or zoomed in one is in both.

import { colours, css, variable } from "./colour.js";
import { make, quoted } from "./dom.js";

const SCALES = {
  similarity: [[-1, "−1"], [-0.5, "−0.5"], [0, "0"], [0.5, "0.5"], [1, "1"]],
  attention: [[0, "0"], [0.04, "4 %"], [0.25, "25 %"], [0.49, "49 %"], [1, "100 %"]],
};
const READABLE = 9;

// A picture of a matrix, a pixel a cell.
export function picture(size, valueAt, what, largest = 1) {
  const canvas = make("canvas", { width: size, height: size });
  const context = canvas.getContext("2d"), image = context.createImageData(size, size);
  const colour = colours(what), words = new Uint32Array(image.data.buffer), by = largest > 0 ? 1 / largest : 1;
  for (let k = 0; k < words.length; k++) words[k] = colour(valueAt(k) * by);
  context.putImageData(image, 0, 0);
  return canvas;
}

export function percent(value, small) {
  return value < small ? `under ${(100 * small).toFixed(1)} %` : `${(100 * value).toFixed(1)} %`;
}

export class Maps {
  // pointed(i, j): null when nothing is; held(i)
  constructor(text, pointed, held) {
    Object.assign(this, { text, pointed, held });
    this.shown = { row: 0, column: 0, span: text.size };
    this.cell = null;
    this.token = null;
    this.maps = { similarity: this.figure("similarity"), attention: this.figure("attention") };
    this.zoom = make("div", { class: "zoom", role: "group", ariaLabel: "Zoom of the maps" },
      make("button", { type: "button", textContent: "+", title: "Nearer (also Ctrl and the mouse wheel)", ariaLabel: "Nearer", onclick: () => this.scaled(0.6) }),
      make("button", { type: "button", textContent: "−", title: "Farther", ariaLabel: "Farther", onclick: () => this.scaled(1 / 0.6) }),
      make("button", { type: "button", textContent: "whole", onclick: () => this.whole() }));
    this.element = make("div", { class: "maps" }, this.maps.similarity.figure, this.maps.attention.figure);
    new ResizeObserver(() => this.draw()).observe(this.element);
  }

  figure(what) {
    const caption = make("figcaption");
    const canvas = make("canvas", { role: "img", tabIndex: 0, "aria-roledescription": "map", ariaLabel: `${what} map: arrow keys move from cell to cell, Enter holds a token, Escape lets go` });
    const read = make("p", { class: "quiet read", ariaLive: "polite" }), scale = make("div", { class: "scale" });
    const at = (event) => this.cellAt(canvas, event);
    canvas.addEventListener("pointermove", (event) => {
      if (this.dragged) this.pan(canvas, event);
      else this.point(at(event));
    });
    canvas.addEventListener("pointerleave", () => this.point(null));
    canvas.addEventListener("pointerdown", (event) => {
      if (this.shown.span < this.text.size) this.dragged = { x: event.clientX, y: event.clientY, ...this.shown, moved: false };
    });
    addEventListener("pointerup", () => setTimeout(() => (this.dragged = null)));
    canvas.addEventListener("click", (event) => {
      const cell = at(event);
      if (cell && !this.dragged?.moved) this.held(cell[0]);
    });
    canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey) return; // a page or notebook is scrolled past the map
      event.preventDefault();
      this.scaled(event.deltaY > 0 ? 1.25 : 0.8, at(event));
    }, { passive: false });
    canvas.addEventListener("keydown", (event) => this.key(event));
    return { what, figure: make("figure", {}, caption, canvas, scale, read), caption, canvas, scale, read };
  }

  show(head) {
    this.head = head;
    this.labels = head.labels;
    const { size } = this.text, { normalised, attention, high, threshold } = head;
    // The matrix is symmetric: below its diagonal there is room for the high pairs alone.
    const below = (k) => Math.floor(k / size) > k % size;
    this.maps.similarity.image = picture(size, (k) => (below(k) ? high(k) : normalised[k]), "similarity", head.largest);
    this.maps.attention.image = picture(size, (k) => attention[k], "attention", head.largestWeight);
    const marks = (words) => (head.lines.length ? words : "");
    this.maps.similarity.caption.replaceChildren(make("b", {}, "Similarity"), ` of the outputs of ${head.what} i (down) and j (across): N; below the diagonal ${head.belowSays}.${marks(" Marks: attention lines, which cut blocks.")}`);
    this.maps.attention.caption.replaceChildren(make("b", {}, "Attention"), ` from ${head.what} i (down) to j (across).${marks(" Marks at the top: attention lines.")}`);
    for (const map of Object.values(this.maps)) this.scale(map, threshold);
    this.draw();
  }

  scale({ what, scale }, threshold) {
    const [low, largest] = what === "similarity" ? [-1, this.head.largest] : [0, this.head.largestWeight];
    const place = what === "similarity" ? (value) => (value + 1) / 2 : Math.sqrt;
    const back = what === "similarity" ? (t) => 2 * t - 1 : (t) => t * t;
    scale.style.background = `linear-gradient(90deg, ${Array.from({ length: 21 }, (_, k) => css(what, back(k / 20))).join(", ")})`;
    const tick = (value, label, kind = "") => {
      const made = make("span", { class: kind }, label);
      made.style.left = `${100 * place(value)}%`;
      return made;
    };
    const told = (value) => (largest === 1 ? null : what === "similarity" ? (value * largest).toPrecision(2) : `${(100 * value * largest).toPrecision(2)} %`);
    scale.replaceChildren(...SCALES[what].filter(([value]) => value >= low).map(([value, label]) => tick(value, told(value) ?? label)));
    if (what === "similarity" && threshold !== null && largest === 1) scale.append(tick(threshold, "", "mark"));
  }

  margin(width) {
    const cell = (width * 0.86) / this.shown.span;
    return cell >= READABLE ? Math.min(width * 0.16, 110) : 0;
  }

  draw() {
    if (!this.head) return;
    for (const map of Object.values(this.maps)) this.drawOne(map);
  }

  drawOne({ what, canvas, image }) {
    const dots = window.devicePixelRatio || 1, width = canvas.clientWidth;
    if (!width) return;
    const whole = Math.round(width * dots);
    if (canvas.width !== whole) canvas.width = canvas.height = whole;
    const context = canvas.getContext("2d");
    context.setTransform(dots, 0, 0, dots, 0, 0);
    context.clearRect(0, 0, width, width);
    const { row, column, span } = this.shown, edge = this.margin(width), side = width - edge, cell = side / span;
    context.imageSmoothingEnabled = false;
    context.drawImage(image, column, row, span, span, edge, edge, side, side);
    context.save();
    context.beginPath();
    context.rect(edge, edge, side, side);
    context.clip();
    if (what === "similarity" && cell * dots < 1.5) this.dots(context, edge, cell);
    this.marks(context, what, edge, cell, side);
    context.restore();
    if (edge) this.axes(context, edge, cell);
  }

  // Where a cell is smaller than a dot of the screen, a high pair would be lost.
  dots(context, edge, cell) {
    const { size } = this.text, { row, column } = this.shown;
    for (const k of this.head.found) {
      context.fillStyle = css("similarity", this.head.normalised[k]);
      context.fillRect(edge + (Math.floor(k / size) - column) * cell - 0.5, edge + ((k % size) - row) * cell - 0.5, 2, 2);
    }
  }

  marks(context, what, edge, cell, side) {
    const { row, column } = this.shown, ink = variable("--chosen");
    const x = (token) => edge + (token - column) * cell, y = (token) => edge + (token - row) * cell;
    context.fillStyle = context.strokeStyle = ink;
    for (const line of this.head.lines) {
      context.globalAlpha = 0.9;
      context.fillRect(x(line), edge, Math.max(cell, 1.5), side / 45);
      if (what === "similarity") {
        context.globalAlpha = 0.3;
        context.fillRect(x(line + 1) - 0.5, edge, 1, side);
        context.fillRect(edge, y(line + 1) - 0.5, side, 1);
      }
    }
    const token = this.cell ? null : this.token;
    context.globalAlpha = 1;
    context.lineWidth = 1;
    const rows = this.cell ? [this.cell[0]] : token === null ? [] : [token];
    const columns = this.cell ? [this.cell[1]] : token === null ? [] : [token];
    for (const each of rows) context.strokeRect(edge - 2, y(each) - 0.5, side + 4, cell + 1);
    for (const each of columns) context.strokeRect(x(each) - 0.5, edge - 2, cell + 1, side + 4);
    if (this.cell) {
      context.lineWidth = 2;
      context.strokeRect(x(this.cell[1]) - 2, y(this.cell[0]) - 2, cell + 4, cell + 4);
    }
  }

  axes(context, edge, cell) {
    const { row, column, span } = this.shown, size = Math.min(12, cell * 0.95);
    context.font = `${size}px system-ui, sans-serif`;
    context.textBaseline = "middle";
    context.textAlign = "right";
    const put = (from, use) => {
      for (let token = Math.ceil(from - 0.5); token < Math.min(this.text.size, from + span - 0.4); token++) use(token);
    };
    const lit = (token) => (this.cell ? this.cell.includes(token) : this.token === token);
    const ink = variable("--ink"), chosen = variable("--chosen");
    const write = (token, x, y, turn) => {
      context.save();
      context.translate(x, y);
      context.rotate(turn);
      context.fillStyle = lit(token) ? chosen : ink;
      if (turn) context.textAlign = "left";
      context.fillText(fitted(context, this.labels[token], edge - 6), 0, 0);
      context.restore();
    };
    put(row, (token) => write(token, edge - 4, edge + (token - row + 0.5) * cell, 0));
    put(column, (token) => write(token, edge + (token - column + 0.5) * cell, edge - 4, -Math.PI / 2));
  }

  cellAt(canvas, event) {
    const box = canvas.getBoundingClientRect(), edge = this.margin(box.width), cell = (box.width - edge) / this.shown.span;
    const token = (value, from) => Math.floor((value - edge) / cell + from);
    const i = token(event.clientY - box.top, this.shown.row), j = token(event.clientX - box.left, this.shown.column);
    const inside = (k) => k >= 0 && k < this.text.size;
    return inside(i) && inside(j) ? [i, j] : null;
  }

  // It is lit a moment later; until then the next key or move is to know of it.
  point(cell) {
    if (String(cell) === String(this.cell)) return;
    this.cell = cell;
    this.pointed(cell);
  }

  // cell: what is pointed at, [i, j]; token: what is pointed at or held in the text
  light(cell, token) {
    this.cell = cell;
    this.token = token;
    for (const { what, read } of Object.values(this.maps)) {
      if (!cell) read.textContent = "";
      else {
        const [i, j] = cell, value = this.head[what === "similarity" ? "normalised" : "attention"][i * this.text.size + j];
        const told = what === "attention" ? percent(value, this.head.small) : i === j ? "itself" : value.toFixed(3);
        read.textContent = `${i} ${quoted(this.labels[i])}, ${j} ${quoted(this.labels[j])}: ${told}`;
      }
    }
    this.draw();
  }

  scaled(by, around = null) {
    const { size } = this.text, { row, column, span } = this.shown;
    const [i, j] = around ?? this.cell ?? (this.token === null ? [row + span / 2, column + span / 2] : [this.token, this.token]);
    const fresh = Math.min(size, Math.max(Math.min(8, size), span * by));
    const from = (middle, first) => Math.min(size - fresh, Math.max(0, middle - ((middle - first) / span) * fresh));
    this.shown = { row: from(i, row), column: from(j, column), span: fresh };
    this.draw();
  }

  whole() {
    this.shown = { row: 0, column: 0, span: this.text.size };
    this.draw();
  }

  pan(canvas, event) {
    const { size } = this.text, { x, y, row, column, span } = this.dragged, cell = canvas.clientWidth / span;
    const bound = (value) => Math.min(size - span, Math.max(0, value));
    this.dragged.moved ||= Math.hypot(event.clientX - x, event.clientY - y) > 3;
    this.shown = { span, row: bound(row - (event.clientY - y) / cell), column: bound(column - (event.clientX - x) / cell) };
    this.draw();
  }

  key(event) {
    const [down, right] = { ArrowDown: [1, 0], ArrowUp: [-1, 0], ArrowRight: [0, 1], ArrowLeft: [0, -1] }[event.key] ?? [0, 0];
    if (event.key === "Enter" && this.cell) this.held(this.cell[0]);
    else if (event.key === "+") this.scaled(0.6);
    else if (event.key === "-") this.scaled(1 / 0.6);
    else if (down || right) {
      const bound = (value) => Math.min(this.text.size - 1, Math.max(0, value));
      const [i, j] = this.cell ?? [this.token ?? 0, this.token ?? 0];
      this.point(this.cell ? [bound(i + down), bound(j + right)] : [i, j]);
    } else return;
    event.preventDefault();
  }
}

export function fitted(context, label, width) {
  if (context.measureText(label).width <= width) return label;
  let cut = label.length;
  while (cut > 1 && context.measureText(`${label.slice(0, cut)}…`).width > width) cut--;
  return `${label.slice(0, cut)}…`;
}
