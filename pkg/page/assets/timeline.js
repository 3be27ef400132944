// The timeline shows what happened in the last hour, and goes back to it.

import { percent } from "./model.js";
import { number } from "./totals.js";

const often = 2000; // milliseconds between two looks at whether there is something to ask
const kinds = ["published", "retired", "released", "allocated", "prepared", "failed", "tainted"];
const svg = document.querySelector("#timeline svg").namespaceURI;
const clock = new Intl.DateTimeFormat([], { timeStyle: "medium" });

export class Timeline {
  report = { buckets: [] };
  then = null; // the time that is shown, or nothing for now
  asking = false; // for the fleet of that time
  stale = true; // the report
  due = 0; // when the report is asked for again, even if nothing has changed
  earliest = 0; // when it may be asked for again

  // show is called with an answer of api/devices?at, or with nothing to show the fleet
  // as it is.
  constructor(section, header, show) {
    this.strip = section.querySelector("svg");
    this.range = section.querySelector("input");
    this.begin = section.querySelector(".begin");
    this.legend = section.querySelector("ul");
    this.list = section.querySelector("details");
    this.section = section;
    this.header = header;
    this.show = show;
    this.range.addEventListener("input", () => this.scrub());
    this.list.addEventListener("toggle", () => this.drawList());
    header.querySelector("button").addEventListener("click", () => this.goTo(null));
    setInterval(() => this.refresh(), often);
    this.refresh();
  }

  // changed says that there is something new.
  changed() {
    this.stale = true;
  }

  async refresh() {
    const began = Date.now();
    if (document.hidden || began < this.earliest || !(this.stale || began > this.due)) return;
    this.earliest = Infinity; // while this is under way
    this.stale = false;
    try {
      this.report = await get("api/timeline");
      this.due = Date.now() + 1000 * this.report.seconds;
      this.draw();
    } catch {
      this.stale = true; // the feed says so if kwok-dra does not answer
    }
    this.earliest = Date.now() + 20 * (Date.now() - began); // a large fleet is asked for seldom
  }

  scrub() {
    const { buckets, begins } = this.report;
    const bucket = buckets[this.range.valueAsNumber];
    this.goTo(bucket ? Math.max(Date.parse(bucket.from), Date.parse(begins)) : null);
  }

  // goTo shows the fleet as it was, or as it is.
  goTo(then) {
    this.then = then;
    this.drawThen();
    if (then === null) this.show(null);
    else if (!this.asking) this.ask();
  }

  // ask asks for the fleet until that of the chosen time is shown, one at a time.
  async ask() {
    this.asking = true;
    let shown = null;
    while (this.then !== shown) {
      const asked = this.then;
      const answer = await get(`api/devices?at=${new Date(asked).toISOString()}`).catch(() => null);
      if (this.then === null) break;
      if (!answer) {
        this.goTo(null);
        break;
      }
      this.show(answer);
      shown = asked;
    }
    this.asking = false;
  }

  // Drawing

  draw() {
    const { buckets } = this.report;
    this.section.hidden = buckets.length === 0;
    if (this.section.hidden) return;
    this.begin.textContent = clock.format(Date.parse(buckets[0].from));
    this.range.max = buckets.length;
    this.strip.setAttribute("viewBox", `0 0 ${buckets.length} 100`);
    this.strip.replaceChildren(...bars(buckets), line(buckets));
    this.legend.replaceChildren(...legend(buckets));
    this.drawThen();
    this.drawList();
  }

  // drawThen shows where on the strip we are.
  drawThen() {
    const { buckets, seconds } = this.report;
    const { then } = this;
    const text = then === null ? "now" : clock.format(then);
    const passed = then === null ? buckets.length : (then - Date.parse(buckets[0].from)) / 1000 / seconds;
    this.range.value = Math.floor(Math.min(passed, buckets.length));
    this.range.setAttribute("aria-valuetext", text);
    document.body.classList.toggle("past", then !== null);
    this.header.hidden = then === null;
    const told = this.header.querySelector("output");
    if (told.value !== text) told.value = text; // or else it would be read out again
    this.strip.querySelector(".then")?.remove();
    if (then !== null) this.strip.append(shape("line", "then", { x1: passed, x2: passed, y1: 0, y2: 100 }));
  }

  drawList() {
    const { changes, begins } = this.report;
    if (!this.list.open || !changes) return;
    const items = changes.map((change) => this.told(change));
    const rest = document.createElement("li");
    rest.textContent = items.length < 200 ? `Nothing before is known: the timeline begins at ${clock.format(Date.parse(begins))}.` : "and more before";
    this.list.querySelector("ol").replaceChildren(...items, rest);
  }

  // told is a change in words. Its time leads there.
  told({ at, kind, node, pool, device, claims }) {
    const item = document.createElement("li");
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = clock.format(Date.parse(at));
    button.title = "Show the fleet as it was then";
    button.addEventListener("click", () => this.goTo(Date.parse(at)));
    const what = document.createElement("span");
    what.className = `kind ${kind}`;
    what.textContent = kind;
    item.append(button, " ", what, ` ${node ?? pool} ${device}${claims ? `, claim ${claims.join(", ")}` : ""}`);
    return item;
  }
}

async function get(path) {
  const response = await fetch(path, { cache: "no-store" });
  if (!response.ok) throw new Error(response.statusText);
  return response.json();
}

// bars stack the kinds of each bucket. A thousand changes are ten times as tall as one,
// so that one is to be seen beside them.
function bars(buckets) {
  const tall = (n) => Math.log2(1 + (n ?? 0));
  const heights = buckets.map(({ changes }) => kinds.reduce((sum, kind) => sum + tall(changes[kind]), 0));
  const unit = 100 / Math.max(4, ...heights);
  return buckets.flatMap(({ changes }, i) => {
    let y = 100;
    return kinds.filter((kind) => changes[kind]).map((kind) => {
      const height = unit * tall(changes[kind]);
      y -= height;
      return shape("rect", `kind ${kind}`, { x: i + 0.1, y, width: 0.8, height });
    });
  });
}

// line is the utilization of all drivers.
function line(buckets) {
  const points = buckets.map((bucket, i) => `${i + 1},${100 - 100 * utilization(bucket)}`);
  points.unshift(points[0].replace("1,", "0,"));
  return shape("polyline", "utilization", { points: points.join(" ") });
}

function utilization({ drivers }) {
  const total = drivers.reduce((sum, { usage }) => sum + usage.total, 0);
  return total ? drivers.reduce((sum, { usage }) => sum + usage.used, 0) / total : 0;
}

function shape(name, className, attributes) {
  const element = document.createElementNS(svg, name);
  element.setAttribute("class", className);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}

// legend says how many changes of each kind there are, and the last utilization.
function legend(buckets) {
  const entry = (className, text) => {
    const element = document.createElement("li");
    element.className = className;
    element.textContent = text;
    return element;
  };
  const entries = kinds.flatMap((kind) => {
    const count = buckets.reduce((sum, { changes }) => sum + (changes[kind] ?? 0), 0);
    return count ? [entry(`kind ${kind}`, `${kind} ${number(count)}`)] : [];
  });
  return [...entries, entry("utilization", `utilization ${percent(utilization(buckets.at(-1)))}`)];
}
