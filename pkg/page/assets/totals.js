// The totals by driver and state.

import { percent, states } from "./model.js";

const count = new Intl.NumberFormat("en");

export function number(n) {
  return count.format(n);
}

// drawTotals fills the table: a row for each driver, and one for all of several.
export function drawTotals(body, drivers) {
  const rows = drivers.map((driver) => row(driver));
  if (drivers.length > 1) {
    rows.push(row(sum(drivers)));
    rows.at(-1).className = "sum";
  }
  body.replaceChildren(...rows);
}

function sum(drivers) {
  const all = { name: "all", pools: 0, incompletePools: 0, usage: { used: 0, total: 0 }, states: Object.fromEntries(states.map((state) => [state, 0])) };
  for (const driver of drivers) {
    all.pools += driver.pools;
    all.incompletePools += driver.incompletePools;
    all.usage.used += driver.usage.used;
    all.usage.total += driver.usage.total;
    for (const state of states) all.states[state] += driver.states[state];
  }
  return all;
}

function row(driver) {
  const devices = states.reduce((n, state) => n + driver.states[state], 0);
  const element = document.createElement("tr");
  const name = document.createElement("th");
  name.scope = "row";
  name.textContent = driver.name;
  element.append(name, bar(driver.usage), figure(devices));
  for (const state of states) element.append(figure(driver.states[state]));
  element.append(figure(driver.pools), figure(driver.incompletePools, "warn"));
  return element;
}

// figure is a cell with a number. What is not there is told quietly.
function figure(n, className = "") {
  const element = document.createElement("td");
  element.textContent = number(n);
  element.className = n === 0 ? "zero" : className;
  return element;
}

// bar shows how much is taken, in whole devices: parts of one device count as that.
function bar({ used, total }) {
  const part = total ? used / total : 0;
  const element = document.createElement("td");
  element.className = "bar";
  element.title = `${number(used)} of ${number(total)} whole devices`;
  const track = document.createElement("div");
  track.className = "track";
  track.ariaHidden = "true";
  const taken = document.createElement("span");
  taken.style.width = `${100 * part}%`;
  track.append(taken);
  const text = document.createElement("span");
  text.className = "percent";
  text.textContent = percent(part);
  element.append(track, text);
  return element;
}
