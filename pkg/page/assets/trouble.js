// The trouble that there is, before all else: what is failing, tainted or waiting.

import { refill } from "./focus.js";
import { plural } from "./groups.js";
import { letters } from "./model.js";
import { number } from "./totals.js";

export class Trouble {
  #told = "";

  // search is called with what finds the trouble.
  constructor(section, { search }) {
    this.list = section.querySelector("ul");
    this.search = search;
  }

  // show says how much trouble there is. Waiting are the Pods that wait, or nothing where
  // that is not known; of the past it never is.
  show({ drivers, waiting, past }) {
    const count = (state) => drivers.reduce((n, driver) => n + driver.states[state], 0);
    const counts = { failing: count("failing"), tainted: count("tainted"), waiting: past ? 0 : waiting, incomplete: drivers.reduce((n, driver) => n + driver.incompletePools, 0) };
    const told = JSON.stringify([counts, past]);
    if (told === this.#told) return;
    this.#told = told;
    const entries = [
      this.#devices("failing", counts.failing),
      this.#devices("tainted", counts.tainted),
      counts.waiting && item(button("waiting", counts.waiting, counts.waiting === 1 ? "Pod waits" : "Pods wait", () => revealWaiting())),
      counts.incomplete && item(text(`${plural(counts.incomplete, "pool")} incomplete`, "incomplete")),
    ].filter(Boolean);
    if (entries.length === 0) entries.push(item(text(past ? "Nothing was failing or tainted." : "Nothing is failing, tainted or waiting.", "fine")));
    if (past) entries.push(item(text("Which Pods waited is not remembered.", "fine")));
    refill(this.list, entries);
  }

  #devices(state, count) {
    return count && item(button(state, count, state, () => this.search(`state=${state}`)));
  }
}

function revealWaiting() {
  const section = document.getElementById("waiting");
  section.scrollIntoView({ block: "nearest" });
  section.querySelector("ul").focus();
}

function item(child) {
  const element = document.createElement("li");
  element.append(child);
  return element;
}

function text(words, className) {
  const element = document.createElement("span");
  element.className = className;
  element.textContent = words;
  return element;
}

// button has a large number, and what it is of.
function button(value, count, words, act) {
  const element = document.createElement("button");
  element.type = "button";
  element.value = value;
  if (letters[value]) {
    const cell = text(letters[value], `cell ${value}`);
    cell.ariaHidden = "true";
    element.append(cell);
  }
  element.append(text(number(count), "count"), text(" " + words, "words"));
  element.addEventListener("click", act);
  return element;
}
