// The Pods that wait for devices, and why.

import { copy, line } from "./commands.js";
import { refill } from "./focus.js";
import { number } from "./totals.js";

const often = 5000; // milliseconds between two questions

export class Waiting {
  told = ""; // the answer that is shown

  constructor(section) {
    this.section = section;
    this.summary = section.querySelector("summary");
    this.list = section.querySelector("ul");
    this.clock = new Intl.DateTimeFormat([], { timeStyle: "short" });
    setInterval(() => document.hidden || this.refresh(), often);
    document.addEventListener("visibilitychange", () => document.hidden || this.refresh());
    this.refresh();
  }

  async refresh() {
    try {
      const response = await fetch("api/waiting", { cache: "no-store" });
      if (response.ok) this.show(await response.text());
    } catch {
      // the feed says so if kwok-dra does not answer
    }
  }

  // show draws an answer, unless it is there already: who reads it or has chosen a button
  // is not disturbed.
  show(text) {
    if (text === this.told) return;
    this.told = text;
    const { groups } = JSON.parse(text);
    const pods = groups.reduce((n, group) => n + group.count, 0);
    this.section.hidden = pods === 0;
    this.summary.textContent = pods === 1 ? "1 Pod waits for devices" : `${number(pods)} Pods wait for devices`;
    refill(this.list, groups.map((group) => this.item(group)));
  }

  item(group) {
    const item = document.createElement("li");
    item.append(span("who", who(group)), span("where", this.where(group)), span("reason", group.reason));
    const answer = document.createElement("ul");
    answer.className = "why";
    answer.ariaLive = "polite";
    const why = button("Explain", () => explain(group, answer));
    why.value = `${group.namespace}/${group.pods[0]}`;
    why.ariaLabel = `Explain why ${who(group)} ${group.count === 1 ? "waits" : "wait"}`;
    const command = line("kwok-dractl", "why", "-n", group.namespace, group.pods[0]);
    const copied = button("Copy command", async () => (copied.textContent = (await copy(command)) ? "Copied" : "Not allowed"));
    copied.title = copied.value = command;
    copied.ariaLabel = `Copy command: ${command}`;
    item.append(why, copied, answer);
    return item;
  }

  where({ state, node, since, retry }) {
    const words = [state === "unscheduled" ? "not scheduled" : node ? `on ${node}` : "on several nodes", `since ${this.clock.format(Date.parse(since))}`];
    if (retry) words.push(`next try ${this.clock.format(Date.parse(retry))}`);
    return words.join(", ");
  }
}

// explain shows why the first Pod of a group waits, in as many lines as there are reasons.
async function explain({ namespace, pods }, list) {
  list.replaceChildren(entry("Looking at all nodes …"));
  const query = new URLSearchParams({ namespace, pod: pods[0] });
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
  const item = document.createElement("li");
  item.textContent = text;
  return item;
}

function button(text, act) {
  const element = document.createElement("button");
  element.type = "button";
  element.textContent = text;
  element.addEventListener("click", act);
  return element;
}

function who({ namespace, owner, count, pods }) {
  return count === 1 ? `${namespace}/${pods[0]}` : `${number(count)} Pods of ${namespace}/${owner}`;
}

function span(className, text) {
  const element = document.createElement("span");
  element.className = className;
  element.textContent = text;
  return element;
}
