import { Details } from "./details.js";
import { follow } from "./feed.js";
import { Grid } from "./grid.js";
import { locate, move, placeOf } from "./keys.js";
import { arrange, bandAt } from "./layout.js";
import { Model, nameOf, samePlace } from "./model.js";
import { Timeline } from "./timeline.js";
import { drawTotals, number } from "./totals.js";

const $ = (id) => document.getElementById(id);
const live = new Model();
let model = live; // or one of the fleet as it was
const grid = new Grid($("grid"), $("canvas"));
const details = new Details($("details"));
const filters = { driver: $("driver"), node: $("node"), state: $("state") };

let loaded = false;
let kept = null; // the place whose details stay
let active = null; // the place where the keyboard is
let hovered = null;
let told = null; // the place whose details are shown

// Data

function take(answer) {
  loaded = true;
  live.apply(answer);
  timeline.changed();
  if (model === live) drawAll();
}

// goBack shows the fleet as it was, or as it is.
function goBack(answer) {
  model = answer ? new Model() : live;
  if (answer) model.apply(answer);
  drawAll();
}

function drawAll() {
  drawTotals($("totals"), model.drivers);
  drawDrivers(model.drivers.map((driver) => driver.name));
  draw();
}

const words = { live: "Live", lost: "No answer from kwok-dra. Trying again" };

function tell(state) {
  const status = $("status");
  if (status.dataset.state === state) return;
  status.dataset.state = state;
  status.textContent = words[state];
}

// Filters

function filter() {
  return { driver: filters.driver.value, node: filters.node.value, state: filters.state.value };
}

// drawDrivers keeps a chosen driver, also while it has no pools.
function drawDrivers(names) {
  const { driver } = filters;
  if (driver.value && !names.includes(driver.value)) names.push(driver.value);
  const listed = [...driver.options].slice(1).map((option) => option.value);
  if (listed.join() === names.join()) return;
  const chosen = driver.value;
  driver.replaceChildren(driver.options[0], ...names.map((name) => new Option(name, name)));
  driver.value = chosen;
}

function restore() {
  const asked = new URLSearchParams(location.hash.slice(1));
  if (asked.get("driver")) filters.driver.append(new Option(asked.get("driver"), asked.get("driver")));
  for (const [name, field] of Object.entries(filters)) field.value = asked.get(name) ?? "";
}

function filtered() {
  const asked = Object.entries(filter()).filter(([, value]) => value);
  history.replaceState(null, "", asked.length ? "#" + new URLSearchParams(asked) : location.pathname);
  $("grid").scrollTop = 0;
  draw();
}

// Drawing

// characterWidth is that of the names, in pixels.
const characterWidth = (() => {
  const probe = document.createElement("span");
  probe.className = "name unseen";
  probe.style.width = "100ch";
  document.body.append(probe);
  const width = probe.getBoundingClientRect().width / 100;
  probe.remove();
  return width;
})();

function draw() {
  const selected = model.select(filter());
  const room = { width: $("canvas").clientWidth, height: $("grid").clientHeight - 20, character: characterWidth };
  grid.show({ ...arrange(selected, room), count: selected.length });
  drawShown(selected);
}

function drawShown(selected) {
  const nodes = selected.filter(({ item }) => item.node !== undefined).length;
  const pools = selected.length - nodes;
  const devices = selected.reduce((n, { pools }) => n + pools.reduce((m, pool) => m + pool.devices.length, 0), 0);
  const plural = (n, word) => `${number(n)} ${word}${n === 1 ? "" : "s"}`;
  const parts = [plural(nodes, "node")];
  if (pools) parts.push(plural(pools, "shared pool"));
  parts.push(plural(devices, "device"));
  $("shown").textContent = loaded ? parts.join(", ") : "";
  $("empty").hidden = !loaded || selected.length > 0;
  $("empty").textContent = model.ids.length ? "No node is like that." : "No fake node is there, and no device is published.";
}

// Details

// drawDetails shows those of the kept place, or else of the one that is pointed
// at, or else of the one where the keyboard is.
function drawDetails() {
  const focused = $("grid").matches(":focus-visible") ? active : null;
  const place = kept ?? hovered ?? focused;
  const found = place && model.find(place);
  if (!found) {
    told = null;
    details.hide();
    return;
  }
  told = place;
  details.show(found, kept !== null);
  details.place(grid.cellOf(place));
}

function choose(change) {
  ({ active, kept, hovered } = { active, kept, hovered, ...change });
  grid.choose(active, kept);
  drawDetails();
}

grid.ondraw = () => {
  if (kept && !model.find(kept)) kept = null;
  drawDetails();
};

function cellAt(event) {
  return event.target.closest?.("#canvas .cell")?.place ?? null;
}

$("canvas").addEventListener("pointerover", (event) => {
  const place = event.pointerType === "touch" ? null : cellAt(event);
  if (!samePlace(place, hovered)) choose({ hovered: place });
});
$("canvas").addEventListener("pointerleave", () => choose({ hovered: null }));
$("canvas").addEventListener("click", (event) => {
  const place = cellAt(event);
  choose({ kept: place && !samePlace(place, kept) ? place : null, active: place ?? active });
});
document.addEventListener("pointerdown", (event) => {
  if (!event.target.closest?.("#canvas, #details")) choose({ kept: null });
});

// Keys

$("grid").addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey) return;
  if (event.key === "Enter" || event.key === " ") {
    choose({ kept: active && !samePlace(active, kept) ? active : null });
    event.preventDefault();
    return;
  }
  const { layout } = grid;
  const page = Math.max(1, Math.floor($("grid").clientHeight / layout.row) - 2);
  const from = Math.min(bandAt(layout.bands, $("grid").scrollTop - 10), layout.bands.length);
  const cursor = move(layout, active && locate(layout, active), event.key, { page, from });
  if (!cursor) return;
  event.preventDefault();
  grid.reveal(cursor.b);
  choose({ active: placeOf(layout, cursor), kept: null, hovered: null });
});
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") choose({ kept: null, hovered: null });
});
$("grid").addEventListener("focus", drawDetails);
$("grid").addEventListener("blur", drawDetails);

// Start

const timeline = new Timeline($("timeline"), $("then"), goBack);
restore();
filters.node.addEventListener("input", filtered);
filters.driver.addEventListener("change", filtered);
filters.state.addEventListener("change", filtered);
addEventListener("hashchange", () => {
  restore();
  draw();
});
new ResizeObserver(() => loaded && draw()).observe($("grid"));
follow(take, tell);
