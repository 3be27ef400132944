// The trouble that there is, before all else: what is failing, tainted, waiting, incomplete, not Ready or gone.

import { make, makeButton, makeLetter, refill } from "./elements.js";
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
  // Pods that wait, and notReady the nodes that are not Ready. Of the past neither is known, nor what was gone.
  show({ drivers, waiting, notReady, past }) {
    const sum = (count) => drivers.reduce((n, driver) => n + count(driver), 0);
    const search = (state) => () => this.search(`state=${state}`);
    const entries = [
      { value: "failing", count: sum(({ states }) => states.failing), words: ["failing", "failing"], act: search("failing") },
      { value: "tainted", count: sum(({ states }) => states.tainted), words: ["tainted", "tainted"], act: search("tainted") },
      { value: "waiting", count: past ? 0 : waiting, words: ["Pod waits", "Pods wait"], act: () => reveal("waiting") },
      { value: "incomplete", count: sum(({ incompletePools }) => incompletePools), words: ["pool incomplete", "pools incomplete"], act: search("incomplete") },
      { value: "notready", count: notReady, words: ["node not Ready", "nodes not Ready"], act: search("notready") },
      { value: "gone", count: sum(({ gone }) => gone ?? 0), words: ["gone", "gone"], act: () => reveal("gone") },
    ].filter(({ count }) => count > 0);
    const told = JSON.stringify([entries, past]);
    if (told === this.#told) return;
    this.#told = told;
    const items = entries.map(({ value, count, words, act }) => button(value, count, words[count === 1 ? 0 : 1], act));
    if (items.length === 0) items.push(make("span", "fine", past ? "Nothing was failing or tainted." : "Nothing is failing, tainted or waiting."));
    if (past) items.push(make("span", "fine", "Which Pods waited is not remembered."));
    refill(this.list, items.map((item) => make("li", "", item)));
  }
}

// reveal leads to a section that lists the trouble.
function reveal(id) {
  const section = document.getElementById(id);
  for (const details of section.querySelectorAll("details")) details.open = true;
  section.scrollIntoView({ block: "nearest" });
  section.querySelector("ul").focus();
}

// button has a large number, and what it is of.
function button(value, count, words, act) {
  const element = makeButton("", act);
  element.value = value;
  if (value in letters) element.append(makeLetter(value));
  element.append(make("span", "count", number(count)), make("span", "words", ` ${words}`));
  return element;
}
