// The Pods that wait for devices, and why.

import { copy, line } from "./commands.js";
import { make, makeButton, refill } from "./elements.js";
import { number } from "./totals.js";

const often = 5000; // milliseconds between two questions

export class Waiting {
  told = ""; // the answer that is shown
  count = 0;
  #open = new Set(); // the groups of which all is shown
  #asks = false;

  // counted is called when another number of Pods waits.
  constructor(section, { counted }) {
    this.section = section;
    this.title = section.querySelector("h2");
    this.problem = section.querySelector("p");
    this.list = section.querySelector("ul");
    this.counted = counted;
    this.clock = new Intl.DateTimeFormat([], { timeStyle: "short" });
    setInterval(() => this.refresh(), often);
    document.addEventListener("visibilitychange", () => this.refresh());
    this.refresh();
  }

  // refresh asks who waits, which is quick, and then why, which may take seconds.
  async refresh() {
    if (document.hidden || this.#asks) return;
    this.#asks = true;
    try {
      for (const address of ["api/waiting", "api/waiting?why"]) {
        const response = await fetch(address, { cache: "no-store" });
        if (response.ok) this.show(await response.text());
        if (this.count === 0) break;
      }
    } catch {
      // the feed says so if kwok-dra does not answer
    }
    this.#asks = false;
  }

  // show draws an answer, unless it is there already: who reads it or has chosen a button
  // is not disturbed.
  show(text) {
    if (text === this.told) return;
    this.told = text;
    const { groups, unexplained = "" } = JSON.parse(text);
    const pods = groups.reduce((n, group) => n + group.count, 0);
    this.section.hidden = pods === 0;
    this.title.textContent = pods === 1 ? "1 Pod waits for devices" : `${number(pods)} Pods wait for devices`;
    this.problem.textContent = unexplained && `Why is not known: ${unexplained}. Below is what the scheduler says.`;
    this.problem.hidden = unexplained === "";
    refill(this.list, groups.map((group) => this.item(group)));
    if (pods === this.count) return;
    this.count = pods;
    this.counted();
  }

  item(group) {
    const key = `${group.namespace}/${group.pods[0]}`;
    const reason = make("span", "reason", group.why ? group.why.reason : group.state === "unscheduled" ? `The scheduler says: ${group.reason}` : group.reason);
    const answer = make("ul", "why");
    answer.ariaLive = "polite";
    const more = makeButton(group.why ? "More" : "Explain", () => {
      const opens = !this.#open.delete(key);
      if (opens) this.#open.add(key);
      more.ariaExpanded = String(opens);
      if (opens) explain(group, answer);
      else answer.replaceChildren();
    });
    more.value = key;
    more.ariaLabel = `${more.textContent}: why ${who(group)} ${group.count === 1 ? "waits" : "wait"}`;
    more.ariaExpanded = String(this.#open.has(key));
    if (this.#open.has(key)) explain(group, answer);
    const command = line("kwok-dractl", "why", "-n", group.namespace, group.pods[0]);
    const copied = makeButton("Copy command", async () => (copied.textContent = (await copy(command)) ? "Copied" : "Not allowed"));
    copied.title = copied.value = command;
    copied.ariaLabel = `Copy command: ${command}`;
    return make("li", "", make("span", "who", who(group)), make("span", "where", this.where(group)), more, copied, reason, answer);
  }

  where({ state, node, since, retry }) {
    const words = [state === "unscheduled" ? "not scheduled" : node ? `on ${node}` : "on several nodes", `since ${this.clock.format(Date.parse(since))}`];
    if (retry) words.push(`next try ${this.clock.format(Date.parse(retry))}`);
    return words.join(", ");
  }
}

// explain shows all that is known of why the first Pod of a group waits, and asks where
// nothing is.
async function explain(group, list) {
  const scheduler = group.state === "unscheduled" ? [`The scheduler says: ${group.reason}`] : [];
  if (group.why) {
    list.replaceChildren(...[`This is of Pod ${group.why.pod}.`, ...(group.why.details ?? []), ...scheduler].map(entry));
    return;
  }
  list.replaceChildren(entry("Looking at all nodes …"));
  const query = new URLSearchParams({ namespace: group.namespace, pod: group.pods[0] });
  let lines;
  try {
    const response = await fetch(`api/why?${query}`, { cache: "no-store" });
    if (response.ok) {
      const { pod, reason, details = [] } = await response.json();
      lines = [`${pod}: ${reason}`, ...details];
    } else {
      lines = [await response.text()];
    }
  } catch {
    lines = ["kwok-dra does not answer"];
  }
  list.replaceChildren(...lines.map(entry));
}

function entry(text) {
  return make("li", "", text);
}

function who({ namespace, owner, count, pods }) {
  if (count === 1) return `${namespace}/${pods[0]}`;
  if (owner) return `${number(count)} Pods of ${namespace}/${owner}`;
  return `${number(count)} Pods of ${namespace}: ${pods.slice(0, 3).join(", ")}${count > 3 ? ", …" : ""}`;
}
