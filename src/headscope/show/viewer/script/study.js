// A study beside one text: every column of its table of heads, with intervals, chance and nulls; see of_study.py.

export class Study {
  constructor(packed) {
    Object.assign(this, packed);
    this.rows = new Map();
  }

  // What it says of a head; null where it did not measure it.
  of(layer, head) {
    const place = this.layers.indexOf(layer), row = place * this.heads + head;
    if (place < 0 || head < 0 || head >= this.heads) return null;
    if (!this.rows.has(row)) {
      const each = (pick) => Object.fromEntries(this.columns.map((column) => [column.name, pick(column)]));
      this.rows.set(row, {
        role: this.roles[row],
        mark: this.marks[this.roles[row]],
        values: each((column) => column.values[row] ?? NaN),
        texts: each((column) => column.texts[row]),
        intervals: each((column) => column.intervals[row]),
        beside: Object.fromEntries(this.beside.map(({ name }) => [name, each((column) => column.beside[name]?.[row] ?? "")])),
        alike: this.alike[row],
      });
    }
    return this.rows.get(row);
  }
}
