// The keys move from cell to cell of a layout, drawn or not.

import { samePlace } from "./model.js";

// A cursor is where a cell is in a layout: band, entry, line, cell. The parts of a device
// come after it.

// locate finds a place in a layout.
export function locate(layout, place) {
  for (const [b, band] of layout.bands.entries()) {
    for (const [e, entry] of band.entries.entries()) {
      if (entry.item.id !== place.id) continue;
      for (const [l, line] of entry.lines.entries()) {
        for (let c = 0; c < line.to - line.from; c++) {
          const cursor = { b, e, l, c };
          if (samePlace(placeOf(layout, cursor), place)) return cursor;
        }
      }
    }
  }
  return null;
}

// placeOf is what is there.
export function placeOf(layout, { b, e, l, c }) {
  const { item, lines } = layout.bands[b].entries[e];
  const { pool, shape, from } = lines[l];
  return { id: item.id, driver: pool.driver, pool: pool.name, device: pool.devices[shape.order[from + c]].name };
}

// move returns where a key leads, or nothing where the key is not for us or leads
// nowhere. Without a cursor, keys lead to the first cell from a band on.
export function move(layout, cursor, key, { page, from }) {
  if (!(key in moves)) return null;
  if (!cursor) return step(layout, { b: from, e: -1, l: 0, c: 0 }, 1);
  return moves[key](layout, cursor, page);
}

const moves = {
  ArrowRight: (layout, at) => (at.c + 1 < length(layout, at) ? { ...at, c: at.c + 1 } : step(layout, at, 1)),
  ArrowLeft: (layout, at) => (at.c > 0 ? { ...at, c: at.c - 1 } : lastOf(layout, step(layout, at, -1))),
  ArrowDown: (layout, at) => fall(layout, at, 1, 1),
  ArrowUp: (layout, at) => fall(layout, at, -1, 1),
  PageDown: (layout, at, page) => fall(layout, at, 1, page),
  PageUp: (layout, at, page) => fall(layout, at, -1, page),
  Home: (layout) => step(layout, { b: 0, e: -1, l: 0, c: 0 }, 1),
  End: (layout) => lastOf(layout, step(layout, { b: layout.bands.length, e: 0, l: Infinity, c: 0 }, -1)),
};

function length(layout, { b, e, l }) {
  const line = layout.bands[b]?.entries[e]?.lines[l];
  return line ? line.to - line.from : 0;
}

function lastOf(layout, at) {
  return at && { ...at, c: length(layout, at) - 1 };
}

// step goes to the next line with cells that is beside this one, or begins a band.
function step(layout, at, by) {
  let { b, e } = at;
  for (;;) {
    e += by;
    if (e < 0 || !layout.bands[b]?.entries[e]) {
      b += by;
      if (b < 0 || b >= layout.bands.length) return null;
      e = by > 0 ? 0 : layout.bands[b].entries.length - 1;
    }
    const lines = layout.bands[b].entries[e]?.lines.length ?? 0;
    const next = { b, e, l: Math.min(at.l, lines - 1), c: 0 };
    if (length(layout, next) > 0) return next;
  }
}

// fall goes up or down by lines with cells, to the same entry and cell or the
// nearest there are.
function fall(layout, at, by, lines) {
  let { b, l } = at;
  let found = null;
  while (lines > 0) {
    l += by;
    if (l < 0 || l >= linesAt(layout, b, at.e)) {
      b += by;
      if (b < 0 || b >= layout.bands.length) break;
      l = by > 0 ? 0 : linesAt(layout, b, at.e) - 1;
    }
    const next = { b, e: Math.min(at.e, layout.bands[b].entries.length - 1), l, c: at.c };
    const cells = length(layout, next);
    if (cells === 0) continue;
    found = { ...next, c: Math.min(at.c, cells - 1) };
    lines--;
  }
  return found;
}

function linesAt(layout, b, e) {
  const { entries } = layout.bands[b];
  return entries[Math.min(e, entries.length - 1)]?.lines.length ?? 0;
}
