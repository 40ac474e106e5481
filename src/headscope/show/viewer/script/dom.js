// Elements are made here and nowhere else. What comes from outside is only ever put in as text.

export const SVG = "http://www.w3.org/2000/svg";

export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "class") element.className = value;
    else if (name in element && name !== "role" && name !== "list") element[name] = value;
    else if (value !== null) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

export function choice(label, options, chosen, changed, attributes = {}) {
  const select = make("select", { onchange: () => changed(select.value), ...attributes });
  for (const [value, words] of options) select.append(make("option", { value, textContent: words }));
  select.value = chosen;
  return make("label", { class: "choice" }, make("span", {}, label), select);
}

// Tokens may be written from right to left: closed off, they do not turn what follows.
export const quoted = (label) => `\u2068“${label}”\u2069`;

export function table(headings, rows, attributes = {}) {
  const cells = (kind, row) =>
    make("tr", {}, ...row.map((value, k) => make(kind, { class: headings[k].number ? "number" : "" }, make("bdi", {}, String(value)))));
  const top = make("tr", {}, ...headings.map((heading) => make("th", { class: heading.number ? "number" : "", title: heading.title ?? "", scope: "col" }, heading.label)));
  return make("table", attributes, make("thead", {}, top), make("tbody", {}, ...rows.map((row) => cells("td", row))));
}

export const later = (work) => {
  let asked = false;
  return () => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      work();
    });
  };
};
