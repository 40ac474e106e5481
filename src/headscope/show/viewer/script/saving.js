// Views as files: SVG, drawn from the same numbers; PNG, made of that SVG; numbers as CSV and JSON.

import { css, variable } from "./colour.js";
import { SVG, make } from "./dom.js";


export function saveBlob(name, blob) {
  const url = URL.createObjectURL(blob);
  const link = make("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

export const saveText = (name, content, type) => saveBlob(name, new Blob([content], { type }));

export async function copied(content) {
  try {
    await navigator.clipboard.writeText(content);
    return true;
  } catch {
    const area = make("textarea", { value: content });
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  }
}

function node(tag, attributes, ...children) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

// XML has no sign for most control characters.
const clean = (text) => [...String(text)].filter((letter) => letter >= " " && letter !== "\ufffe" && letter !== "\uffff").join("");
const words = (x, y, text, more = {}) => node("text", { x, y, fill: variable("--ink"), ...more }, clean(text));

export function sheet(width, height, title, ...children) {
  const svg = node("svg", { xmlns: SVG, width, height, viewBox: `0 0 ${width} ${height}`, "font-family": "system-ui, sans-serif", "font-size": 13 },
    node("title", {}, clean(title)), node("rect", { width, height, fill: variable("--paper") }), ...children);
  return svg;
}

export const markup = (svg) => `<?xml version="1.0" encoding="UTF-8"?>\n${new XMLSerializer().serializeToString(svg)}\n`;

export async function savePng(name, svg, times = 2) {
  const url = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(markup(svg))}`;
  const image = new Image();
  await new Promise((resolve, reject) => Object.assign(image, { onload: resolve, onerror: reject, src: url }));
  const canvas = make("canvas", { width: svg.getAttribute("width") * times, height: svg.getAttribute("height") * times });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  saveBlob(name, await new Promise((resolve) => canvas.toBlob(resolve)));
}

// Both maps of a head as they are shown, with the tokens along their axes where these fit.
export function headSheet(title, about, maps) {
  const side = 520, edge = 90, gap = 40, top = 70, { row, column, span } = maps.shown, cell = side / span;
  const every = Math.max(1, Math.ceil(9 / cell)), size = Math.min(12, cell * every * 0.95);
  const told = every > 1 ? `${about} · one token in ${every} is named` : about;
  const parts = [words(16, 26, title, { "font-size": 17, "font-weight": 600 }), words(16, 46, told, { fill: variable("--quiet") })];
  Object.values(maps.maps).forEach(({ what, image }, k) => {
    const left = 16 + k * (edge + side + gap), x = left + edge, y = top + edge;
    const box = node("svg", { x, y, width: side, height: side, viewBox: `${column} ${row} ${span} ${span}` });
    box.append(node("image", { x: 0, y: 0, width: maps.text.size, height: maps.text.size, href: image.toDataURL(), style: "image-rendering: pixelated" }));
    for (const line of maps.head.lines) {
      box.append(node("rect", { x: line, y: row, width: 1, height: span / 45, fill: variable("--chosen") }));
      if (what === "similarity")
        box.append(node("path", { d: `M${line + 1} ${row}v${span}M${column} ${line + 1}h${span}`, stroke: variable("--chosen"), "stroke-width": span / side, "stroke-opacity": 0.4, fill: "none" }));
    }
    parts.push(box, node("rect", { x, y, width: side, height: side, fill: "none", stroke: variable("--edge") }));
    parts.push(words(x, top + edge + side + 22, what === "similarity" ? `Similarity N of outputs; below the diagonal ${maps.head.belowSays}` : "Attention, row to column"));
    for (let stop = 0; stop < 60; stop++) {
      const t = stop / 59, value = what === "similarity" ? 2 * t - 1 : t * t;
      parts.push(node("rect", { x: x + (stop * side) / 60, y: y + side + 32, width: side / 60 + 0.5, height: 10, fill: css(what, value) }));
    }
    const ends = what === "similarity" ? [-maps.head.largest, maps.head.largest] : [0, maps.head.largestWeight];
    parts.push(words(x, y + side + 58, ends[0].toPrecision(2)), words(x + side, y + side + 58, ends[1].toPrecision(2), { "text-anchor": "end" }));
    for (let token = Math.ceil(row); token < Math.min(maps.text.size, row + span); token += every)
      parts.push(words(x - 4, y + (token - row + 0.5) * cell, cut(maps.labels[token]), { "text-anchor": "end", "dominant-baseline": "middle", "font-size": size }));
    for (let token = Math.ceil(column); token < Math.min(maps.text.size, column + span); token += every) {
      const at = x + (token - column + 0.5) * cell;
      parts.push(words(at, y - 4, cut(maps.labels[token]), { transform: `rotate(-90 ${at} ${y - 4})`, "dominant-baseline": "middle", "font-size": size }));
    }
  });
  return sheet(2 * (edge + side) + gap + 32, top + edge + side + 80, title, ...parts);
}

const cut = (label) => (label.length > 14 ? `${label.slice(0, 13)}…` : label);

export function atlasSheet(title, about, atlas) {
  const cell = 52, left = 50, top = 80, { layers, heads } = atlas.text, parts = [];
  parts.push(words(16, 26, title, { "font-size": 17, "font-weight": 600 }), words(16, 46, about, { fill: variable("--quiet") }));
  const wide = atlas.sorted ? Math.ceil(Math.sqrt(1.6 * atlas.order.length)) : heads + 1, tall = atlas.sorted ? cell + 16 : cell;
  if (!atlas.sorted) {
    for (let head = -1; head < heads; head++) parts.push(words(left + (head + 1.5) * cell, top - 6, head < 0 ? "all" : head, { "text-anchor": "middle" }));
    layers.forEach((layer, place) => parts.push(words(left - 8, top + (place + 0.55) * cell, layer, { "text-anchor": "end" })));
  }
  atlas.order.forEach((button, k) => {
    const x = left + (k % wide) * cell, y = top + Math.floor(k / wide) * tall;
    parts.push(node("image", { x, y, width: cell - 4, height: cell - 4, href: button.querySelector("canvas").toDataURL() }));
    const role = button.style.getPropertyValue("--role");
    parts.push(node("rect", { x, y, width: cell - 4, height: cell - 4, fill: "none", stroke: role || variable("--edge"), "stroke-width": role ? 2 : 1 }));
    if (atlas.sorted) parts.push(words(x, y + cell + 6, button.tag.textContent, { "font-size": 9 }));
  });
  const bottom = top + Math.ceil(atlas.order.length / wide) * tall + 14, marks = Object.entries(atlas.study?.marks ?? {}), across = 4;
  marks.forEach(([role, [colour]], k) => {
    const x = left + (k % across) * 160, y = bottom + Math.floor(k / across) * 20;
    parts.push(node("rect", { x, y: y - 9, width: 10, height: 10, fill: "none", stroke: colour, "stroke-width": 2 }), words(x + 16, y, role));
  });
  return sheet(left + wide * cell + 16, bottom + Math.ceil(marks.length / across) * 20, title, ...parts);
}
