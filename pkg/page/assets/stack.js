// Stack puts bands below one another.
export class Stack {
  bands = [];
  rows = 0;

  constructor(size, columns) {
    this.size = size;
    this.columns = columns;
  }

  height() {
    const last = this.bands.at(-1);
    return last ? last.top + this.#tallness(last) : 0;
  }

  #tallness({ entries, heading }) {
    if (heading) return this.size.row + this.size.gap;
    const heights = entries.map((entry) => this.#entryHeight(entry));
    const several = entries.some((entry) => entry.lines.length > 1 || entry.lines[0]?.height > this.size.row);
    return Math.max(...heights) + this.size.gap * (several ? 3 : 1);
  }

  #entryHeight({ lines, first }) {
    const above = this.size.stacked && first ? this.size.row : 0;
    return above + (lines.length ? lines.reduce((sum, line) => sum + line.height, 0) : this.size.row);
  }

  #push(band) {
    this.bands.push({ top: this.height(), ...band });
  }

  heading(heading) {
    this.#push({ heading: { ...heading, row: ++this.rows }, entries: [] });
  }

  // beside puts an entry beside the last one, as long as there is a column left.
  beside(item, lines) {
    const entry = { item, lines, first: true, row: ++this.rows };
    const last = this.bands.at(-1);
    if (last?.open && last.entries.length < this.columns) last.entries.push(entry);
    else this.#push({ entries: [entry], open: true });
  }

  // apart gives each line of an entry a band, since there may be hundreds.
  apart(item, lines) {
    lines.forEach((line, i) => this.#push({ entries: [{ item, lines: [line], first: i === 0, row: ++this.rows }], wide: true }));
  }
}
