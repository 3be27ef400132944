// The layout says where everything goes, without any of it being drawn: bands of
// known heights, one below the other, with one or several entries side by side.

import { nameOf } from "./model.js";

const narrowest = 4; // cells in a line
const widest = 32; // where several nodes are side by side
const tall = 6; // lines, from which on an entry has bands of its own

const sizes = {
  dense: { step: 18, row: 22, gap: 2 },
  roomy: { step: 30, row: 34, gap: 4 },
};

// arrange lays selected items out in a width: one below the other where all of
// them fit into the height so, and larger if they still do, or else side by side.
export function arrange(selected, { width, height, character }) {
  const most = Math.floor(width / 3);
  const names = {
    name: Math.min(most, nameWidth(selected, character)),
    driver: Math.min(most, driverWidth(selected, character)),
  };
  for (const size of [sizes.roomy, sizes.dense]) {
    if (selected.length * size.row > height) continue;
    const below = arrangeIn(selected, { ...size, ...names, width, columns: 1 });
    if (below.height <= height) return { ...below, roomy: size === sizes.roomy };
  }
  return arrangeIn(selected, { ...sizes.dense, ...names, width });
}

function nameWidth(selected, character) {
  return Math.ceil((Math.min(32, longest(selected.map(({ item }) => nameOf(item)))) + 0.5) * character) + 12;
}

// driverWidth is 0 where there is only one driver, which needs no telling.
function driverWidth(selected, character) {
  const drivers = new Set(selected.flatMap(({ pools }) => pools.map((pool) => pool.driver)));
  if (drivers.size < 2) return 0;
  return Math.ceil(Math.min(26, longest([...drivers])) * character * 0.95) + 16;
}

function longest(texts) {
  return texts.reduce((most, text) => Math.max(most, text.length), 1);
}

function arrangeIn(selected, size) {
  const rest = size.width - size.name - size.driver;
  const fit = Math.max(narrowest, Math.floor(rest / size.step));
  const most = longest(selected.flatMap(({ item, pools }) => (item.node === undefined ? [] : pools.map((pool) => pool.devices))));
  const perLine = size.columns ? fit : Math.min(fit, widest, Math.max(most, narrowest));
  const entryWidth = size.name + size.driver + perLine * size.step + 24;
  const columns = size.columns ?? Math.max(1, Math.floor((size.width + 24) / entryWidth));
  const stack = new Stack(size);
  const shared = selected.filter(({ item }) => item.node === undefined);
  const nodes = selected.filter(({ item }) => item.node !== undefined);
  if (shared.length && nodes.length) stack.heading("Pools that nodes share");
  for (const one of shared) stack.alone(one, fit);
  if (shared.length && nodes.length) stack.heading("Nodes");
  for (const one of nodes) {
    const lines = linesOf(one.pools, perLine);
    if (lines.length > tall && fit > perLine) stack.alone(one, fit);
    else if (lines.length > tall) stack.apart(one, lines);
    else stack.beside(one, lines, columns);
  }
  return { ...size, columns, entryWidth, bands: stack.bands, height: stack.height() };
}

// linesOf divides pools into lines of at most so many devices.
function linesOf(pools, perLine) {
  const lines = [];
  for (const pool of pools) {
    let from = 0;
    do {
      lines.push({ pool, from, to: Math.min(from + perLine, pool.devices.length), first: from === 0 });
      from += perLine;
    } while (from < pool.devices.length);
  }
  return lines;
}

// Stack puts bands below one another.
class Stack {
  bands = [];
  constructor(size) {
    this.size = size;
  }

  height() {
    const last = this.bands.at(-1);
    return last ? last.top + this.tallness(last) : 0;
  }

  tallness(band) {
    const lines = band.entries.reduce((most, entry) => Math.max(most, entry.lines.length), 1);
    return lines * this.size.row + this.size.gap * (lines > 1 ? 3 : 1);
  }

  push(band) {
    this.bands.push({ top: this.height(), ...band });
  }

  heading(text) {
    this.push({ heading: text, entries: [] });
  }

  // beside puts an entry beside the last one, as long as there is a column left.
  beside({ item }, lines, columns) {
    const entry = { item, lines, first: true };
    const last = this.bands.at(-1);
    if (last?.open && last.entries.length < columns) last.entries.push(entry);
    else this.push({ entries: [entry], open: true });
  }

  // alone gives an entry all of the width.
  alone({ item, pools }, fit) {
    this.apart({ item }, linesOf(pools, fit));
  }

  // apart gives each line of an entry a band, since there may be hundreds.
  apart({ item }, lines) {
    lines.forEach((line, i) => this.push({ entries: [{ item, lines: [line], first: i === 0 }], wide: true }));
  }
}

// bandAt is the index of the band at a height.
export function bandAt(bands, y) {
  let low = 0;
  let high = bands.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (bands[middle].top <= y) low = middle;
    else high = middle - 1;
  }
  return low;
}
