"use strict";
// The page is whole without this: it adds sorting, filtering, the choice of columns, the map of heads and the slider of thresholds.
(() => {
  const GROUPS = ["overview", "pairs", "repeats-and-sentences", "signal-and-noise", "attention", "lines-and-blocks"];
  const table = document.getElementById("heads");
  const headers = [...table.tHead.rows[0].cells];
  const body = table.tBodies[0];
  const numberOf = (text) => (text === "–" ? NaN : Number(text.replaceAll(",", "")));
  const rows = [...body.rows].map((row) => ({ row, values: [...row.cells].map((cell) => numberOf(cell.textContent)) }));
  const element = (id) => document.getElementById(id);
  const measure = element("measure"), least = element("least"), layer = element("layer"), columns = element("columns");
  const make = (tag, text, parent) => {
    const made = document.createElement(tag);
    made.textContent = text;
    parent.append(made);
    return made;
  };

  function sortBy(target, index, descending) {
    const heads = [...target.tHead.rows[0].cells];
    heads.forEach((head) => head.removeAttribute("aria-sort"));
    heads[index].setAttribute("aria-sort", descending ? "descending" : "ascending");
    const keyed = [...target.tBodies[0].rows].map((row) => [numberOf(row.cells[index].textContent), row]);
    const known = (value) => (Number.isNaN(value) ? -Infinity : value);
    keyed.sort((a, b) => (descending ? known(b[0]) - known(a[0]) : known(a[0]) - known(b[0])) || 0); // NaN: both unknown
    target.tBodies[0].append(...keyed.map(([, row]) => row));
  }

  // A span, not a button: Chromium does not repeat a table's header on every printed page if it holds a button.
  function sortable(target) {
    [...target.tHead.rows[0].cells].forEach((head, index) => {
      const button = document.createElement("span");
      button.setAttribute("role", "button");
      button.tabIndex = 0;
      button.append(...head.childNodes);
      head.append(button);
      const sort = () => {
        const now = head.getAttribute("aria-sort");
        sortBy(target, index, now ? now === "ascending" : index > 1);
      };
      button.addEventListener("click", sort);
      button.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" && event.key !== " ") return;
        event.preventDefault();
        sort();
      });
    });
  }

  function choosable() {
    headers.forEach((head, index) => {
      if (index > 2) make("option", head.textContent, measure).value = index;
    });
    measure.value = headers.findIndex((head) => head.dataset.column === "repeat_probability");
    GROUPS.slice(1).forEach((group) => (make("option", group.replaceAll("-", " "), columns).value = group));
    make("option", "all", columns).value = "all";
    new Set(rows.map(({ values }) => values[0])).forEach((number) => make("option", number, layer));
  }

  // Hiding whole columns by rule keeps the cells free of classes.
  const rule = document.head.appendChild(document.createElement("style"));
  function showColumns() {
    const hidden = [];
    for (const id of ["heads", "layers"]) {
      [...element(id).tHead.rows[0].cells].forEach((head, index) => {
        const topics = head.dataset.topics.split(" ");
        const key = ["layer", "head"].includes(head.dataset.column);
        if (!key && columns.value !== "all" && !topics.includes(columns.value))
          hidden.push(`#${id} tr > :nth-child(${index + 1})`);
      });
    }
    rule.textContent = hidden.length ? `${hidden.join(",")} { display: none; }` : "";
  }

  function filter() {
    const index = Number(measure.value);
    const bound = least.value === "" ? -Infinity : Number(least.value);
    let count = 0;
    for (const { row, values } of rows) {
      const fits = (layer.value === "" || values[0] === Number(layer.value)) && (bound === -Infinity || values[index] >= bound);
      row.hidden = !fits;
      count += fits;
    }
    element("count").textContent = `${count} of ${rows.length} heads`;
  }

  function drawMap() {
    const index = Number(measure.value);
    const known = rows.map(({ values }) => values[index]).filter((value) => !Number.isNaN(value));
    const low = Math.min(...known, 0), high = Math.max(...known, 0);
    const map = element("map");
    map.replaceChildren();
    const heads = new Set(rows.map(({ values }) => values[1]));
    const grid = make("div", "", map);
    grid.className = "grid";
    grid.style.gridTemplateColumns = `4.2rem repeat(${heads.size}, minmax(0, 1fr))`;
    make("span", "", grid);
    heads.forEach((head) => make("span", head, grid));
    let before = null;
    for (const { row, values } of rows) {
      if (values[0] !== before) make("span", `layer ${values[0]}`, grid);
      before = values[0];
      const cell = make("button", "", grid);
      const told = `layer ${values[0]}, head ${values[1]}: ${row.cells[index].textContent}`;
      cell.title = told;
      cell.setAttribute("aria-label", told);
      cell.style.setProperty("--a", Number.isNaN(values[index]) || high === low ? 0 : ((values[index] - low) / (high - low)).toFixed(3));
      cell.classList.toggle("out", row.hidden);
      cell.addEventListener("click", () => choose(row));
    }
    const legend = make("div", "", map);
    legend.className = "legend";
    make("span", headers[index].textContent, legend);
    make("span", low, legend);
    make("i", "", legend);
    make("span", high, legend);
  }

  function choose(row) {
    body.querySelector(".chosen")?.classList.remove("chosen");
    row.classList.add("chosen");
    row.hidden = false;
    const box = table.parentElement;
    box.scrollTo({ top: row.offsetTop - box.clientHeight / 2, behavior: "smooth" });
  }

  function changed() {
    filter();
    drawMap();
  }

  // At another threshold: cells and sentences come with the page as headscope made them; here they are put in place.
  function thresholds() {
    const packed = element("at-thresholds"), boxes = [...document.querySelectorAll(".threshold")];
    if (!packed || !("DecompressionStream" in window)) return;
    const rowsOf = { heads: rows.map(({ row }) => row), layers: [...element("layers").tBodies[0].rows] };
    const list = document.querySelector(".findings"), ownFindings = list.innerHTML;
    let unpacked = null, chosen = null; // hundredths; null: the study's own

    async function unpack() {
      const bytes = Uint8Array.from(atob(packed.content.textContent), (letter) => letter.charCodeAt(0));
      const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
      const content = await new Response(stream).json();
      for (const id of ["heads", "layers"]) {
        const names = [...element(id).tHead.rows[0].cells].map((head) => head.dataset.column);
        content[id] = Object.entries(content[id]).map(([name, cells]) => {
          const index = names.indexOf(name);
          const chance = names.indexOf(element(id).tHead.rows[0].cells[index].dataset.chance);
          const own = rowsOf[id].map(({ cells }) => cells[index].cloneNode(true));
          return { index, chance, own, there: cells.map((texts) => texts.split(" ")) };
        });
      }
      return content;
    }

    function bars(id, { index, chance }) {
      const values = rowsOf[id].map(({ cells }) => numberOf(cells[index].textContent));
      const chances = rowsOf[id].map(({ cells }) => (chance < 0 ? NaN : numberOf(cells[chance].textContent)));
      const longest = Math.max(0, ...[...values, ...chances].filter((value) => !Number.isNaN(value)));
      rowsOf[id].forEach(({ cells }, place) => {
        const cell = cells[index], marked = !Number.isNaN(chances[place]) && longest > 0;
        cell.removeAttribute("style");
        cell.classList.toggle("c", marked);
        if (longest > 0 && !Number.isNaN(values[place])) cell.style.setProperty("--v", values[place] / longest);
        if (marked) cell.style.setProperty("--c", chances[place] / longest);
      });
    }

    function fill(id, columns) {
      const target = element(id);
      for (const { index, own, there } of columns)
        rowsOf[id].forEach((row, place) => {
          if (chosen === null) row.cells[index].replaceWith(own[place].cloneNode(true));
          else {
            row.cells[index].textContent = there[place][chosen - 5];
            row.cells[index].removeAttribute("title");
          }
        });
      if (chosen !== null) columns.forEach((column) => bars(id, column));
      const sorted = target.querySelector("[aria-sort]");
      if (sorted) sortBy(target, sorted.cellIndex, sorted.getAttribute("aria-sort") === "descending");
    }

    async function show() {
      const content = await (unpacked ??= unpack());
      fill("heads", content.heads);
      fill("layers", content.layers);
      rows.forEach((one) => (one.values = [...one.row.cells].map((cell) => numberOf(cell.textContent))));
      changed();
      list.innerHTML = chosen === null ? ownFindings : content.findings[chosen - 5];
    }

    function move(hundredths) {
      for (const box of boxes) {
        const own = hundredths === null || String(hundredths) === box.dataset.own;
        chosen = own ? null : hundredths;
        const range = box.querySelector("input"), output = box.querySelector("output"), button = box.querySelector("button");
        output.dataset.own ??= output.textContent;
        range.value = own ? range.defaultValue : hundredths / 100;
        output.textContent = own ? output.dataset.own : (hundredths / 100).toFixed(2);
        range.setAttribute("aria-valuetext", own ? `${output.textContent}, the study's own` : `${output.textContent}, pooled over pairs`);
        if (own && document.activeElement === button) range.focus(); // A button that goes out would take the focus along.
        button.disabled = own;
        box.querySelectorAll("[data-when]").forEach((words) => (words.hidden = (words.dataset.when === "own") !== own));
      }
      show();
    }

    for (const box of boxes) {
      const range = box.querySelector("input");
      range.value = range.defaultValue; // A browser that goes back remembers where it stood.
      range.addEventListener("input", () => move(Math.round(range.value * 100)));
      box.querySelector("button").addEventListener("click", () => move(null));
      box.hidden = false;
    }
  }

  choosable();
  sortable(table);
  sortable(element("layers"));
  columns.addEventListener("change", showColumns);
  measure.addEventListener("change", () => {
    const shownTopics = headers[measure.value].dataset.topics.split(" ");
    if (columns.value !== "all" && !shownTopics.includes(columns.value)) columns.value = shownTopics[0];
    showColumns();
    sortBy(table, Number(measure.value), true);
    changed();
  });
  least.addEventListener("input", changed);
  layer.addEventListener("change", changed);
  showColumns();
  changed();
  thresholds();
  measure.closest(".controls").hidden = false;
  element("map").hidden = false;

  document.querySelectorAll("figure img").forEach((image) =>
    image.addEventListener("click", () => image.parentElement.classList.toggle("large"))
  );
  document.querySelectorAll(".bibtex").forEach((box) => {
    const button = make("button", "Copy", box);
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(box.firstElementChild.textContent);
      button.textContent = "Copied";
    });
  });
})();
