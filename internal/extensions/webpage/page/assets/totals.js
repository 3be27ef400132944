// The totals by driver and state.

import { make, makeButton, makeLetter, refill } from "./elements.js";
import { percent, states } from "./model.js";

const count = new Intl.NumberFormat("en");

export function number(n) {
  return count.format(n);
}

const troubles = ["failing", "tainted"];

// drawTotals fills the table: a row for each driver, after one for all of several. Search
// is called with what a number counts, where that is trouble.
export function drawTotals(body, drivers, search) {
  const rows = drivers.map((driver) => row(driver, search));
  if (drivers.length > 1) {
    rows.unshift(row(sum(drivers), search));
    rows[0].className = "sum";
  }
  refill(body, rows);
}

function sum(drivers) {
  const all = { name: "", pools: 0, incompletePools: 0, usage: { used: 0, total: 0 }, states: Object.fromEntries(states.map((state) => [state, 0])) };
  for (const driver of drivers) {
    all.pools += driver.pools;
    all.incompletePools += driver.incompletePools;
    all.usage.used += driver.usage.used;
    all.usage.total += driver.usage.total;
    for (const state of states) all.states[state] += driver.states[state];
  }
  return all;
}

function row(driver, search) {
  const devices = states.reduce((n, state) => n + driver.states[state], 0);
  const name = make("th", "", driver.name || "all");
  name.scope = "row";
  name.title = name.textContent;
  const incomplete = figure(driver.incompletePools);
  if (driver.incompletePools > 0) incomplete.replaceChildren(link(driver, driver.incompletePools, "incomplete", search));
  return make("tr", "", name, bar(driver.usage), figure(devices, "devices"), ...states.map((state) => figureOf(driver, state, search)), figure(driver.pools), incomplete);
}

// figureOf counts a state. In a small window its letter is beside it, where the head of the
// table is not shown.
function figureOf(driver, state, search) {
  const n = driver.states[state];
  const element = figure(n, "count");
  if (n > 0 && troubles.includes(state)) element.replaceChildren(link(driver, n, state, search));
  element.prepend(makeLetter(state));
  element.title = state;
  return element;
}

// link is a number that leads to what it counts.
function link(driver, n, state, search) {
  const asked = driver.name ? `state=${state} driver=${driver.name}` : `state=${state}`;
  const button = makeButton(number(n), () => search(asked));
  button.className = "link";
  button.title = `Search ${asked}`;
  button.value = asked;
  button.ariaLabel = `${number(n)} ${state}, search ${asked}`;
  return button;
}

// figure is a cell with a number. What is not there is told quietly.
function figure(n, className = "") {
  return make("td", n === 0 ? `zero ${className}` : className, number(n));
}

// bar shows how much is taken, in whole devices: parts of one device count as that.
function bar({ used, total }) {
  const part = total ? used / total : 0;
  const taken = make("span", "");
  taken.style.width = `${100 * part}%`;
  const track = make("div", "track", taken);
  track.ariaHidden = "true";
  const element = make("td", "bar", track, make("span", "percent", percent(part)));
  element.title = `${number(used)} of ${number(total)} whole devices`;
  return element;
}
