// The trouble that there is, before all else: what is failing, tainted, waiting, incomplete or gone.

import { refill } from "./focus.js";
import { letters } from "./model.js";
import { number } from "./totals.js";

export class Trouble {
  #told = "";

  // search is called with what finds the trouble.
  constructor(section, { search }) {
    this.list = section.querySelector("ul");
    this.search = search;
  }

  // show says how much trouble there is; each number leads to what it counts. Waiting are the
  // Pods that wait. Of the past it is not known who waited and what was gone.
  show({ drivers, waiting, past }) {
    const sum = (count) => drivers.reduce((n, driver) => n + count(driver), 0);
    const search = (state) => () => this.search(`state=${state}`);
    const entries = [
      { value: "failing", count: sum(({ states }) => states.failing), words: ["failing", "failing"], act: search("failing") },
      { value: "tainted", count: sum(({ states }) => states.tainted), words: ["tainted", "tainted"], act: search("tainted") },
      { value: "waiting", count: past ? 0 : waiting, words: ["Pod waits", "Pods wait"], act: () => reveal("waiting") },
      { value: "incomplete", count: sum(({ incompletePools }) => incompletePools), words: ["pool incomplete", "pools incomplete"], act: search("incomplete") },
      { value: "gone", count: sum(({ gone }) => gone ?? 0), words: ["gone", "gone"], act: () => reveal("gone") },
    ].filter(({ count }) => count > 0);
    const told = JSON.stringify([entries, past]);
    if (told === this.#told) return;
    this.#told = told;
    const items = entries.map(({ value, count, words, act }) => item(button(value, count, words[count === 1 ? 0 : 1], act)));
    if (items.length === 0) items.push(item(text(past ? "Nothing was failing or tainted." : "Nothing is failing, tainted or waiting.", "fine")));
    if (past) items.push(item(text("Which Pods waited is not remembered.", "fine")));
    refill(this.list, items);
  }
}

// reveal leads to a section that lists the trouble.
function reveal(id) {
  const section = document.getElementById(id);
  for (const details of section.querySelectorAll("details")) details.open = true;
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
