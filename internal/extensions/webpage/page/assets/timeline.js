// The timeline shows what happened in the last hour, and goes back to it.

import { make, makeButton } from "./elements.js";
import { plural } from "./groups.js";
import { number } from "./totals.js";

const often = 2000; // milliseconds between two looks at whether there is something to ask
const kinds = ["published", "retired", "released", "allocated", "prepared", "failed", "tainted"];
const svg = document.querySelector("#timeline svg").namespaceURI;
const steps = [5, 10, 30, 60, 120, 300, 600, 900, 1800]; // seconds between two ticks
const tickWidth = 100; // pixels, at least
const least = 4; // percent of the height, of a bar
const short = new Intl.DateTimeFormat([], { timeStyle: "short" });
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
    this.about = section.querySelector(".about");
    this.most = section.querySelector(".most");
    this.axis = section.querySelector(".axis");
    this.legend = section.querySelector("ul");
    this.list = section.querySelector("details");
    this.section = section;
    this.header = header;
    this.show = show;
    this.range.addEventListener("input", () => this.scrub());
    this.list.addEventListener("toggle", () => this.drawList());
    header.querySelector("button").addEventListener("click", () => this.goTo(null));
    new ResizeObserver(() => this.draw()).observe(this.axis);
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
    this.about.textContent = `devices that changed, each ${span(this.report.seconds)}`;
    this.range.max = buckets.length;
    this.strip.setAttribute("viewBox", `0 0 ${buckets.length} 100`);
    const ticks = ticksOf(this.report, this.axis.clientWidth / tickWidth);
    const most = Math.max(1, ...buckets.map(changesOf));
    this.most.textContent = plural(most, "change");
    this.strip.replaceChildren(...ticks.map(({ x }) => shape("line", "tick", { x1: x, x2: x, y1: 0, y2: 100 })), ...bars(buckets, most), line(buckets));
    this.axis.replaceChildren(...ticks.map(({ x, text }) => tick(x / buckets.length, text)), tick(1, "now"));
    this.legend.replaceChildren(...legend(buckets));
    this.drawThen();
    this.drawList();
  }

  // drawThen shows where on the strip we are.
  drawThen() {
    const { buckets, seconds } = this.report;
    const { then } = this;
    const text = then === null ? "now" : clock.format(then);
    const ago = then === null ? "" : `, ${span(Math.max(1, Math.round((Date.now() - then) / 1000)))} ago`;
    const passed = then === null ? buckets.length : (then - Date.parse(buckets[0].from)) / 1000 / seconds;
    this.range.value = Math.floor(Math.min(passed, buckets.length));
    this.range.setAttribute("aria-valuetext", text);
    document.body.classList.toggle("past", then !== null);
    this.header.hidden = then === null;
    const told = this.header.querySelector("output");
    if (told.dataset.then !== text) told.value = text + ago; // or else it would be read out again
    told.dataset.then = text;
    this.strip.querySelector(".then")?.remove();
    if (then !== null) this.strip.append(shape("line", "then", { x1: passed, x2: passed, y1: 0, y2: 100 }));
  }

  drawList() {
    const { changes, begins } = this.report;
    if (!this.list.open || !changes) return;
    const items = changes.map((change) => this.told(change));
    const rest = items.length < 200 ? `Nothing before is known: the timeline begins at ${clock.format(Date.parse(begins))}.` : "and more before";
    this.list.querySelector("ol").replaceChildren(...items, make("li", "", rest));
  }

  // told is a change in words. Its time leads there.
  told({ at, kind, node, pool, device, claims }) {
    const button = makeButton(clock.format(Date.parse(at)), () => this.goTo(Date.parse(at)));
    button.title = "Show the fleet as it was then";
    return make("li", "", button, " ", make("span", `kind ${kind}`, kind), ` ${node ?? pool} ${device}${claims ? `, claim ${claims.join(", ")}` : ""}`);
  }
}

async function get(path) {
  const response = await fetch(path, { cache: "no-store" });
  if (!response.ok) throw new Error(response.statusText);
  return response.json();
}

// span is a number of seconds as people say it.
function span(seconds) {
  return seconds < 60 ? `${seconds} s` : `${Math.round(seconds / 60)} min`;
}

// ticksOf are the round times of the report, each with its place. The last is not written
// over "now".
function ticksOf({ buckets, seconds }, most) {
  const from = Date.parse(buckets[0].from) / 1000;
  const all = buckets.length * seconds;
  const step = steps.find((one) => all / one <= most) ?? steps.at(-1);
  const ticks = [];
  for (let at = Math.ceil(from / step) * step; at - from < 0.9 * all; at += step) {
    ticks.push({ x: (at - from) / seconds, text: (step < 60 ? clock : short).format(1000 * at) });
  }
  return ticks;
}

function tick(part, text) {
  const element = make("span", part < 0.05 ? "first" : part === 1 ? "last" : "", text);
  element.style.left = `${100 * part}%`;
  return element;
}

function changesOf({ changes }) {
  return kinds.reduce((sum, kind) => sum + (changes[kind] ?? 0), 0);
}

// bars stack the kinds of each bucket, in proportion to their changes, of which there are at
// most so many. One change is still to be seen beside a thousand.
function bars(buckets, most) {
  const tall = (n) => Math.max(least, ((100 - kinds.length * least) * n) / most);
  return buckets.flatMap(({ changes }, i) => {
    let y = 100;
    return kinds.filter((kind) => changes[kind]).map((kind) => {
      const height = tall(changes[kind]);
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

// legend says how many changes of each kind there are.
function legend(buckets) {
  const entries = kinds.flatMap((kind) => {
    const count = buckets.reduce((sum, { changes }) => sum + (changes[kind] ?? 0), 0);
    return count ? [make("li", `kind ${kind}`, `${kind} ${number(count)}`)] : [];
  });
  return [...entries, make("li", "utilization", "utilization")];
}
