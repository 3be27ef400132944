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
    const { row, gap } = this.size;
    if (heading) return row + gap;
    let most = 0;
    for (const entry of entries) most = Math.max(most, this.#entryHeight(entry));
    return most + gap * (most > row ? 3 : 1);
  }

  #entryHeight({ lines, first }) {
    const { row, stacked } = this.size;
    let height = stacked && first ? row : 0;
    for (const line of lines) height += line.height;
    return lines.length ? height : height + row;
  }

  #push(band) {
    band.top = this.height();
    this.bands.push(band);
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
