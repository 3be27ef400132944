// The totals by driver and state.

import { states } from "./model.js";

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
  const all = { name: "all", pools: 0, incompletePools: 0, states: Object.fromEntries(states.map((state) => [state, 0])) };
  for (const driver of drivers) {
    all.pools += driver.pools;
    all.incompletePools += driver.incompletePools;
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
  element.append(name, bar(driver, devices), figure(devices));
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

// bar shows the shares of the states. The numbers beside it say the same.
function bar(driver, devices) {
  const element = document.createElement("td");
  element.className = "bar";
  const shares = document.createElement("div");
  shares.className = "shares";
  shares.ariaHidden = "true";
  for (const state of ["tainted", "prepared", "allocated"]) {
    const share = document.createElement("span");
    share.className = state;
    share.style.width = `${devices ? (100 * driver.states[state]) / devices : 0}%`;
    shares.append(share);
  }
  element.append(shares);
  return element;
}
