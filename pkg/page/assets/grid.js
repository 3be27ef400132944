// The grid draws those bands of a layout that are to be seen, and no others.

import { bandAt } from "./layout.js";
import { letters, nameOf, percent, samePlace } from "./model.js";

const beyond = 300; // pixels that are drawn above and below

export class Grid {
  layout = { bands: [], height: 0 };
  drawn = new Map(); // from the index of a band to its element

  constructor(grid, canvas) {
    this.grid = grid;
    this.canvas = canvas;
    grid.addEventListener("scroll", () => this.draw(), { passive: true });
  }

  // show draws another layout.
  show(layout) {
    this.layout = layout;
    this.grid.classList.toggle("roomy", Boolean(layout.roomy));
    this.grid.setAttribute("aria-rowcount", layout.count);
    this.canvas.style.height = `${layout.height}px`;
    this.canvas.style.setProperty("--name", `${layout.name}px`);
    this.canvas.style.setProperty("--driver", `${layout.driver}px`);
    this.draw(true);
  }

  // draw draws what has come into view, and all of it anew where asked to.
  draw(anew) {
    const { bands } = this.layout;
    const top = this.grid.scrollTop - this.canvas.offsetTop;
    const first = bandAt(bands, top - beyond);
    const last = bandAt(bands, top + this.grid.clientHeight + beyond);
    for (const [index, element] of this.drawn) {
      if (index >= first && index <= last && index < bands.length) continue;
      element.remove();
      this.drawn.delete(index);
    }
    for (let index = first; index <= last && index < bands.length; index++) {
      let element = this.drawn.get(index);
      if (element && !anew) continue;
      if (!element) {
        element = this.canvas.appendChild(make("div", "band", "presentation"));
        this.drawn.set(index, element);
      }
      drawBand(element, bands[index], this.layout);
    }
    this.mark();
    this.ondraw?.();
  }

  // choose marks the cells that are active (of the keyboard) and chosen (whose
  // details are shown).
  choose(active, chosen) {
    this.active = active;
    this.chosen = chosen;
    this.mark();
  }

  mark() {
    this.grid.removeAttribute("aria-activedescendant");
    for (const cell of this.canvas.querySelectorAll(".active, .chosen")) {
      cell.classList.remove("active", "chosen");
      cell.removeAttribute("id");
    }
    this.cellOf(this.chosen)?.classList.add("chosen");
    const cell = this.cellOf(this.active);
    if (!cell) return;
    cell.classList.add("active");
    cell.id = "active";
    this.grid.setAttribute("aria-activedescendant", "active");
  }

  // cellOf is the cell of a place, if it is drawn.
  cellOf(place) {
    if (!place) return null;
    for (const element of this.drawn.values()) {
      for (const cell of element.querySelectorAll(".cells > .cell")) {
        if (samePlace(cell.place, place)) return cell;
      }
    }
    return null;
  }

  // reveal scrolls a band into view.
  reveal(index) {
    const band = this.layout.bands[index];
    const top = band.top + this.canvas.offsetTop;
    const bottom = top + this.layout.row * 2;
    if (top - this.layout.row < this.grid.scrollTop) this.grid.scrollTop = top - this.layout.row;
    else if (bottom > this.grid.scrollTop + this.grid.clientHeight) this.grid.scrollTop = bottom - this.grid.clientHeight;
    this.draw();
  }
}

function make(tag, className, role) {
  const element = document.createElement(tag);
  element.className = className;
  if (role) element.setAttribute("role", role);
  return element;
}

// set changes a property only where it is another: most of what is drawn anew is
// as it was.
function set(element, name, value) {
  if (element[name] !== value) element[name] = value;
}

// fit gives an element as many children.
function fit(element, count, create) {
  while (element.children.length > count) element.lastElementChild.remove();
  while (element.children.length < count) element.append(create());
  return element.children;
}

function drawBand(element, band, layout) {
  element.style.top = `${band.top}px`;
  if (band.heading) {
    set(element, "className", "band heading");
    if (element.firstElementChild || element.textContent !== band.heading) element.textContent = band.heading;
    return;
  }
  if (!element.firstElementChild) element.textContent = "";
  set(element, "className", "band");
  element.style.gridTemplateColumns = band.wide ? "1fr" : `repeat(${layout.columns}, minmax(0, ${layout.entryWidth}px))`;
  const children = fit(element, band.entries.length, makeEntry);
  band.entries.forEach((entry, i) => drawEntry(children[i], entry, layout));
}

function makeEntry() {
  const entry = make("div", "entry", "row");
  entry.append(make("span", "name", "rowheader"), make("div", "lines", "presentation"));
  return entry;
}

function drawEntry(element, entry, layout) {
  const [name, lines] = element.children;
  const text = nameOf(entry.item);
  set(name, "textContent", text);
  set(name, "title", entry.first ? text : "");
  name.classList.toggle("again", !entry.first);
  if (entry.lines.length === 0) {
    lines.replaceChildren(make("span", "line nothing"));
    lines.firstChild.textContent = "no devices";
    return;
  }
  if (lines.firstElementChild?.classList.contains("nothing")) lines.replaceChildren();
  const children = fit(lines, entry.lines.length, makeLine);
  entry.lines.forEach((line, i) => drawLine(children[i], entry.item, line, layout));
}

function makeLine() {
  const line = make("div", "line", "presentation");
  line.append(make("span", "driver", "presentation"), make("span", "cells", "presentation"));
  return line;
}

function drawLine(element, item, line, layout) {
  const [driver, cells] = element.children;
  const { pool } = line;
  set(driver, "hidden", layout.driver === 0);
  set(driver, "textContent", line.first ? pool.driver : "");
  set(driver, "title", pool.driver);
  element.classList.toggle("incomplete", pool.slices !== pool.resourceSliceCount);
  const children = fit(cells, line.to - line.from, () => make("span", "cell", "gridcell"));
  for (let i = line.from; i < line.to; i++) drawCell(children[i - line.from], item, pool, pool.devices[i]);
}

function drawCell(element, item, pool, device) {
  const place = { id: item.id, driver: pool.driver, pool: pool.name, device: device.name };
  if (!samePlace(element.place, place)) {
    element.place = place;
    element.classList.remove("active", "chosen");
  }
  const className = `cell ${device.state}`;
  if (!element.className.startsWith(className)) element.className = className;
  set(element, "textContent", letters[device.state]);
  set(element, "ariaLabel", described(device));
}

// described says all that matters of a device in a line.
function described(device) {
  const words = [`${device.name}: ${device.state}`];
  if (device.shared) words.push(`${percent(device.used ?? 0)} taken`);
  if (device.blockedBy) words.push(`blocked by ${device.blockedBy}`);
  for (const claim of device.claims ?? []) {
    words.push(`claim ${claim.namespace}/${claim.name}`);
    if (claim.failure) words.push(`failure: ${claim.failure}`);
    if (claim.pods) words.push(`Pod ${claim.pods.join(", ")}`);
  }
  for (const taint of device.taints ?? []) words.push(`taint ${taintText(taint)}`);
  return words.join("; ");
}

// taintText is a taint as kubectl writes it.
export function taintText(taint) {
  return `${taint.key}${taint.value ? "=" + taint.value : ""}:${taint.effect}`;
}
