// The layout says where everything goes, without any of it being drawn: bands of
// known heights, one below the other, with one or several entries side by side.

import { nameOf } from "./model.js";
import { Stack } from "./stack.js";

const narrowest = 4; // cells in a line
const widest = 32; // where several nodes are side by side
const cellsBeside = [widest, 16, 8]; // which are tried for up to so many items as are told of
const label = 280; // pixels, for the name and what it is above devices
const tall = 6; // lines, from which on an entry has bands of its own
const small = 640; // pixels of width, below which names stand above devices
const gutter = 24; // pixels between columns
const shortDriver = 139; // pixels, for the names of drivers if that makes room for a column more
const told = 300; // items, up to which it is told what they are

const sizes = {
  dense: { cell: 16, step: 18, row: 22, gap: 2, part: 13 },
  roomy: { cell: 26, step: 30, row: 34, gap: 4, part: 19 },
};

// arrange lays sections out in a width: one item below the other where all of them fit
// into the height so, and larger if they still do, or else side by side, in the way that is
// least tall. About says what an item is.
export function arrange(sections, { width, height, character, about }) {
  const shown = sections.flatMap(({ heading, selected }) => (heading?.closed ? [] : selected));
  const tell = shown.length <= told;
  const stacked = width < small && tell;
  const name = stacked ? width : Math.min(0.25 * width, nameWidth(shown, character));
  const driver = Math.min((stacked ? 0.4 : 0.25) * width, driverWidth(shown, character));
  const info = tell && !stacked ? Math.min(0.75 * width - name - driver, infoWidth(shown, about, character)) : 0; // a quarter is left for devices
  for (const size of [sizes.roomy, sizes.dense]) {
    if (shown.length * size.row > height) continue;
    const below = arrangeIn(sections, shown, { ...size, name, driver, info, width, stacked, tell, columns: 1 });
    const roomy = size === sizes.roomy;
    if (below.height <= height && !(roomy && isBroken(below))) return { ...below, roomy };
  }
  const size = { ...sizes.dense, name, driver, info, width, stacked, tell };
  if (stacked) return arrangeIn(sections, shown, { ...size, columns: 1 });
  return waysBeside(shown, size, about).map((way) => arrangeIn(sections, shown, way)).reduce((best, one) => (one.height < best.height ? one : best));
}

// waysBeside are ways to put many items side by side: with fewer devices in a line, and with
// shorter names of drivers. Where they differ it is told above its devices what each is.
function waysBeside(shown, size, about) {
  if (!size.tell) return [{ ...size, info: 0 }];
  const differ = new Set(shown.map(({ item }) => about(item))).size > 1;
  const drivers = [size.driver, Math.min(size.driver, shortDriver)];
  return cellsBeside.flatMap((most) => drivers.map((driver) => ({ ...size, stacked: differ, info: 0, most, driver })));
}

// isBroken reports whether devices with parts are not all in one line.
function isBroken({ bands }) {
  return bands.some(({ entries }) => entries.some(({ lines }) => lines.some(({ shape, first }) => shape.divided && !first)));
}

function nameWidth(shown, character) {
  return Math.ceil((Math.min(32, longest(shown.map(({ item }) => nameOf(item)))) + 0.5) * character) + 12;
}

function infoWidth(shown, about, character) {
  const length = shown.reduce((most, { item }) => Math.max(most, about(item).length), 0);
  return length && Math.ceil(Math.min(64, length) * character) + 16;
}

// driverWidth is 0 where there is only one driver, which needs no telling.
function driverWidth(shown, character) {
  const drivers = new Set();
  for (const { pools } of shown) for (const { pool } of pools) drivers.add(pool.driver);
  if (drivers.size < 2) return 0;
  return Math.ceil(Math.min(26, longest([...drivers])) * character) + 16;
}

function longest(texts) {
  return texts.reduce((most, text) => Math.max(most, text.length), 1);
}

function arrangeIn(sections, shown, size) {
  const before = size.driver + size.info + (size.stacked ? 0 : size.name);
  const fit = Math.max(narrowest * size.step, size.width - before);
  const cells = size.columns ? fit : Math.min(fit, Math.max(cellsWidth(shown, size), size.stacked ? label - before : 0));
  const columns = size.columns ?? Math.max(1, Math.floor((size.width + gutter) / (before + cells + gutter)));
  const stack = new Stack(size, columns);
  for (const { heading, selected } of sections) {
    if (heading) stack.heading(heading);
    if (heading?.closed) continue;
    for (const one of selected) place(stack, one, { cells, fit }, size);
  }
  return { ...size, columns, bands: stack.bands, rows: stack.rows, height: stack.height() };
}

// cellsWidth is what the widest node needs, of those that are beside others.
function cellsWidth(shown, size) {
  let most = narrowest;
  for (const { item, pools } of shown) {
    if (item.node === undefined) continue;
    for (const { shape } of pools) if (!shape.divided) most = Math.max(most, Math.min(size.most ?? widest, shape.boxes.length));
  }
  return most * size.step;
}

// place puts an item beside others, but for one that is tall or has divided devices.
function place(stack, { item, pools }, { cells, fit }, size) {
  if (item.node === undefined) {
    stack.apart(item, linesOf(pools, fit, size));
    return;
  }
  const lines = linesOf(pools, cells, size);
  const divided = pools.some(({ shape }) => shape.divided);
  if (lines.length <= tall && (!divided || size.columns)) stack.beside(item, lines);
  else stack.apart(item, fit > cells ? linesOf(pools, fit, size) : lines);
}

// linesOf divides pools into lines that are no wider than that.
function linesOf(pools, width, size) {
  const lines = [];
  for (const { pool, shape, found } of pools) {
    for (const { from, to, height } of pack(shape, width, size)) lines.push({ pool, shape, found, from, to, height, first: from === 0 });
  }
  return lines;
}

// pack divides a shape into lines. All pools of a kind are divided alike, so the last
// result is kept.
function pack(shape, width, size) {
  if (shape.packed?.width === width && shape.packed.step === size.step) return shape.packed.lines;
  const lines = [{ from: 0, to: 0, height: size.row }];
  let x = 0;
  for (const { at, count } of shape.boxes) {
    const box = count > 1 ? boxOf(count - 1, size) : { width: size.step, height: size.row };
    if (x > 0 && x + box.width > width) {
      lines.push({ from: at, to: at, height: size.row });
      x = 0;
    }
    const line = lines.at(-1);
    line.to = at + count;
    line.height = Math.max(line.height, box.height);
    x += box.width;
  }
  shape.packed = { width, step: size.step, lines };
  return lines;
}

// columnsOf is how many parts are beside one another in their whole.
export function columnsOf(parts) {
  return Math.max(2, Math.ceil(Math.sqrt(parts * 1.6)));
}

function boxOf(parts, size) {
  const columns = columnsOf(parts);
  return {
    width: columns * size.part + 5 + size.step - size.cell,
    height: Math.ceil(parts / columns) * size.part + size.cell + 7 + size.row - size.cell,
  };
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
