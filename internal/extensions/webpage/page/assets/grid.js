// The grid draws those bands of a layout that are to be seen, and no others.

import { bandAt, columnsOf } from "./layout.js";
import { isIncomplete, letters, nameOf, percent, samePlace } from "./model.js";

const beyond = 300; // pixels that are drawn above and below

export class Grid {
  layout = { bands: [], height: 0 };
  drawn = new Map(); // from the index of a band to its element

  constructor(grid, canvas) {
    this.grid = grid;
    this.canvas = canvas;
    grid.addEventListener("scroll", () => this.draw(), { passive: true });
  }

  // about says what a node is.
  about = () => "";

  // show draws another layout.
  show(layout) {
    this.layout = layout;
    this.grid.classList.toggle("roomy", Boolean(layout.roomy));
    this.grid.classList.toggle("stacked", Boolean(layout.stacked));
    this.grid.setAttribute("aria-rowcount", layout.rows);
    this.canvas.style.height = `${layout.height}px`;
    this.canvas.style.setProperty("--name", `${layout.name}px`);
    this.canvas.style.setProperty("--driver", `${layout.driver}px`);
    this.canvas.style.setProperty("--info", `${layout.info}px`);
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
        element = this.canvas.appendChild(makeWithRole("div", "band", "presentation"));
        this.drawn.set(index, element);
      }
      drawBand(element, bands[index], this.layout, this.about);
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
      for (const cell of element.querySelectorAll(".cells .cell")) {
        if (samePlace(cell.place, place)) return cell;
      }
    }
    return null;
  }

  // reveal scrolls a band into view.
  reveal(index) {
    const band = this.layout.bands[index];
    const top = band.top + this.canvas.offsetTop;
    const bottom = top + Math.max(this.layout.row * 2, ...band.entries.flatMap(({ lines }) => lines.map(({ height }) => height)));
    if (top - this.layout.row < this.grid.scrollTop) this.grid.scrollTop = top - this.layout.row;
    else if (bottom > this.grid.scrollTop + this.grid.clientHeight) this.grid.scrollTop = bottom - this.grid.clientHeight;
    this.draw();
  }
}

function makeWithRole(tag, className, role) {
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

function drawBand(element, band, layout, about) {
  element.style.top = `${band.top}px`;
  if (band.heading) {
    drawHeading(element, band.heading);
    return;
  }
  if (element.role === "row") element.replaceChildren(); // it was a heading
  element.removeAttribute("aria-rowindex");
  set(element, "role", "presentation");
  set(element, "className", "band");
  element.style.gridTemplateColumns = band.wide ? "1fr" : `repeat(${layout.columns}, minmax(0, 1fr))`;
  const children = fit(element, band.entries.length, makeEntry);
  band.entries.forEach((entry, i) => drawEntry(children[i], entry, layout, about));
}

// drawHeading draws the heading of a section; one of a group closes and opens it.
function drawHeading(element, { text, key, detail, closed, row }) {
  set(element, "role", "row");
  set(element, "className", "band heading");
  element.style.gridTemplateColumns = "1fr";
  element.setAttribute("aria-rowindex", row);
  const cell = makeWithRole("span", "title", "gridcell");
  if (key === undefined) {
    cell.textContent = text;
    element.replaceChildren(cell);
    return;
  }
  if (element.firstElementChild?.firstElementChild?.localName !== "button") {
    cell.append(makeWithRole("button", "", ""), makeWithRole("span", "detail"));
    element.replaceChildren(cell);
  }
  const [button, count] = element.firstElementChild.children;
  set(button, "textContent", text);
  set(button, "ariaExpanded", String(!closed));
  button.group = key;
  set(count, "textContent", detail);
}

function makeEntry() {
  const entry = makeWithRole("div", "entry", "row");
  entry.append(makeWithRole("span", "name", "rowheader"), makeWithRole("span", "info", "presentation"), makeWithRole("div", "lines", "presentation"));
  return entry;
}

function drawEntry(element, entry, layout, about) {
  const [name, info, lines] = element.children;
  const text = entry.first ? nameOf(entry.item) : "";
  const what = entry.first ? about(entry.item) : "";
  element.setAttribute("aria-rowindex", entry.row);
  set(name, "textContent", text);
  set(name, "title", [text, what].filter(Boolean).join(": "));
  set(name, "role", entry.first ? "rowheader" : "presentation");
  set(name, "ariaLabel", entry.first ? [text, what].filter(Boolean).join(", ") : null);
  set(info, "textContent", layout.tell ? what : "");
  set(info, "title", what);
  set(info, "hidden", layout.stacked ? !entry.first : layout.info === 0);
  set(name, "hidden", layout.stacked && !entry.first);
  if (entry.lines.length === 0) {
    lines.replaceChildren(makeWithRole("span", "line nothing", "gridcell"));
    lines.firstChild.textContent = "no devices";
    return;
  }
  if (lines.firstElementChild?.classList.contains("nothing")) lines.replaceChildren();
  const children = fit(lines, entry.lines.length, makeLine);
  entry.lines.forEach((line, i) => drawLine(children[i], entry.item, line, layout));
}

function makeLine() {
  const line = makeWithRole("div", "line", "presentation");
  line.append(makeWithRole("span", "driver", "presentation"), makeWithRole("span", "cells", "presentation"));
  return line;
}

function drawLine(element, item, line, layout) {
  const [driver, cells] = element.children;
  const { pool, shape } = line;
  element.style.height = line.height === layout.row ? "" : `${line.height}px`;
  element.classList.toggle("tall", line.height !== layout.row);
  set(driver, "hidden", layout.driver === 0);
  set(driver, "textContent", line.first ? pool.driver : "");
  set(driver, "title", pool.driver);
  element.classList.toggle("incomplete", isIncomplete(pool));
  const boxes = shape.boxes.filter((box) => box.at >= line.from && box.at < line.to);
  fit(cells, boxes.length, () => makeWithRole("span", "cell", "gridcell"));
  boxes.forEach((box, i) => drawBox(cells, i, item, line, box));
}

// drawBox draws a device: a cell, or a box with the cells of its parts in it.
function drawBox(cells, i, item, line, box) {
  const { pool, shape } = line;
  const indices = shape.order.slice(box.at, box.at + box.count);
  let element = cells.children[i];
  if (element.classList.contains("box") !== box.count > 1) {
    const other = box.count > 1 ? makeBox() : makeWithRole("span", "cell", "gridcell");
    element.replaceWith(other);
    element = other;
  }
  if (box.count === 1) {
    drawCell(element, item, line, indices[0]);
    return;
  }
  const [head, parts] = element.children;
  const whole = pool.devices[indices[0]];
  set(element, "className", `box ${whole.state}`);
  drawCell(head.firstElementChild, item, line, indices[0]);
  set(head.lastElementChild, "textContent", whole.name);
  parts.style.gridTemplateColumns = `repeat(${columnsOf(box.count - 1)}, max-content)`;
  const children = fit(parts, box.count - 1, () => makeWithRole("span", "cell", "gridcell"));
  indices.slice(1).forEach((index, at) => drawCell(children[at], item, line, index, true));
}

function makeBox() {
  const box = makeWithRole("span", "box", "presentation");
  const head = makeWithRole("span", "head", "presentation");
  const label = makeWithRole("span", "label", "presentation");
  label.ariaHidden = "true";
  head.append(makeWithRole("span", "cell", "gridcell"), label);
  box.append(head, makeWithRole("span", "parts", "presentation"));
  return box;
}

function drawCell(element, item, { pool, found }, index, part) {
  const device = pool.devices[index];
  const place = { id: item.id, driver: pool.driver, pool: pool.name, device: device.name };
  if (!samePlace(element.place, place)) {
    element.place = place;
    element.classList.remove("active", "chosen");
  }
  const looks = `cell ${device.state}${part ? " part" : ""}${found && !found[index] ? " other" : ""}`;
  if (element.looks !== looks) element.className = element.looks = looks;
  set(element, "textContent", letters[device.state]);
  set(element, "ariaLabel", described(device, pool.kind.describe(index)));
}

// described says all that matters of a device in a line.
function described(device, { whole }) {
  const words = [`${device.name}: ${device.state}`];
  if (whole) words.push(`part of ${whole}`);
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
