import { Details } from "./details.js";
import { make } from "./elements.js";
import { follow } from "./feed.js";
import { Gone } from "./gone.js";
import { Grid } from "./grid.js";
import { group, labelsOf, plural } from "./groups.js";
import { locate, move, placeOf } from "./keys.js";
import { Labels } from "./labels.js";
import { arrange, bandAt } from "./layout.js";
import { Model, productsOf, samePlace } from "./model.js";
import { Query } from "./query.js";
import { meant, Search } from "./search.js";
import { Timeline } from "./timeline.js";
import { drawTotals, number } from "./totals.js";
import { Trouble } from "./trouble.js";
import { Waiting } from "./waiting.js";

const $ = (id) => document.getElementById(id);
const instanceType = "node.kubernetes.io/instance-type";
const live = new Model();
let model = live; // or one of the fleet as it was
const grid = new Grid($("grid"), $("canvas"));
const gone = new Gone($("gone"));
const labels = new Labels(() => draw());
const details = new Details($("details"), { search: searchFor, drawn: () => drawDetails(), close: () => choose({ kept: null, hovered: null }) });
const trouble = new Trouble($("trouble"), { search: searchFor });
const fields = { search: $("search"), terms: $("terms"), problem: $("problem"), by: $("group"), label: $("label"), labels: $("labels") };
const query = new Query(fields, asked);

let loaded = false;
let kept = null; // the place whose details stay
let active = null; // the place where the keyboard is
let hovered = null;

// Data

function take(answer) {
  loaded = true;
  if (live.apply(answer)) labels.refresh();
  timeline.changed();
  if (model === live) drawAll();
}

// goBack shows the fleet as it was, or as it is. What devices are is known from now.
function goBack(answer) {
  model = answer ? new Model(live.kinds) : live;
  if (answer) model.apply({ ...answer, since: "" });
  drawAll();
}

function drawAll() {
  drawTotals($("totals"), model.drivers, searchFor);
  drawTrouble();
  gone.show(model);
  draw();
}

// drawTrouble says nothing before it is known who waits and what there is.
function drawTrouble() {
  if (loaded) trouble.show({ drivers: model.drivers, waiting: waiting.count, notReady: model.notReady, past: model !== live });
}

const words = { live: "Live", lost: "No answer from kwok-dra. Trying again" };

function tell(state) {
  const status = $("status");
  if (status.dataset.state === state) return;
  status.dataset.state = state;
  status.textContent = words[state];
}

// Search and groups

function asked() {
  $("grid").scrollTop = 0;
  draw();
}

// searchFor is for links: what they name takes the place of the search.
function searchFor(text) {
  choose({ kept: null, hovered: null });
  query.set(text);
  $("grid").scrollIntoView({ block: "nearest" }); // in a small window it is far below
}

async function suggestLabels() {
  query.suggestLabels(await labels.names());
}

function suggestTerms() {
  query.suggestTerms(known());
}

// known is what a search can ask for.
function known() {
  return { kinds: [...model.kinds.values()], drivers: model.drivers.map(({ name }) => name), instances: labels.get(instanceType), items: [...model.byId.values()] };
}

// Drawing

// characterWidth is that of the names, in pixels.
const characterWidth = (() => {
  const probe = make("span", "name unseen");
  probe.style.width = "100ch";
  $("canvas").append(probe); // where names have their font
  const width = probe.getBoundingClientRect().width / 100;
  probe.remove();
  return width;
})();

// about says what a node is.
function about(item) {
  return [productsOf(item), labels.get(instanceType).get(item.node)].filter(Boolean).join(" · ");
}

function draw() {
  if (!loaded) return;
  const search = new Search(query.text, model.kinds.values(), labels.get(instanceType));
  query.tell(search);
  const selected = model.select(search);
  for (const label of labelsOf(query.grouping)) labels.get(label);
  const sections = group(selected, query.grouping, labels);
  for (const { heading } of sections) if (heading?.key !== undefined) heading.closed = query.closed.has(heading.key);
  const room = { width: $("canvas").clientWidth, height: $("grid").clientHeight - 20, character: characterWidth, about };
  grid.show(arrange(sections, room));
  $("grid").ariaBusy = String(labels.waiting > 0);
  drawShown(selected, search.terms.length > 0);
}

function drawShown(selected, searched) {
  const nodes = selected.filter(({ item }) => item.node !== undefined).length;
  const pools = selected.length - nodes;
  let [devices, found] = [0, 0];
  for (const part of selected.flatMap(({ pools }) => pools)) {
    devices += part.pool.devices.length;
    found += part.found ? part.found.reduce((n, one) => n + one, 0) : part.pool.devices.length;
  }
  const parts = [plural(nodes, "node")];
  if (pools) parts.push(plural(pools, "shared pool"));
  parts.push(searched ? `${number(found)} of ${plural(devices, "device")} found` : plural(devices, "device"));
  $("shown").textContent = parts.join(", ");
  $("empty").hidden = selected.length > 0;
  const empty = model.ids.length ? "No device is like that." : model === live ? "No fake node is there, and no device is published." : "No fake node was there, and no device was published.";
  query.propose($("empty"), empty, selected.length === 0 && model.ids.length ? meant(query.text, known()) : "");
}

// Details

// drawDetails shows those of the kept place, or else of the one that is pointed
// at, or else of the one where the keyboard is.
function drawDetails() {
  const focused = $("grid").matches(":focus-visible") ? active : null;
  const place = kept ?? hovered ?? focused;
  const found = place && model.find(place);
  if (!found) {
    details.hide();
    return;
  }
  details.show(found, kept !== null, model !== live);
  details.place(grid.cellOf(place));
}

function choose(change) {
  const focused = $("details").contains(document.activeElement);
  ({ active, kept, hovered } = { active, kept, hovered, ...change });
  if (focused && !kept) $("grid").focus();
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
  const { group } = event.target;
  if (group !== undefined) {
    query.toggle(group);
    draw();
    return;
  }
  const place = cellAt(event);
  choose({ kept: place && !samePlace(place, kept) ? place : null, active: place ?? active });
});
document.addEventListener("pointerdown", (event) => {
  if (!event.target.closest?.("#canvas, #details")) choose({ kept: null });
});

// Keys

$("grid").addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey || event.target !== $("grid")) return;
  if (event.key === "Enter" || event.key === " ") {
    choose({ kept: active && !samePlace(active, kept) ? active : null });
    if (kept) $("details").focus();
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
  if (event.key === "/" && !event.ctrlKey && !event.altKey && !event.metaKey && !event.target.closest("input, select, textarea")) {
    event.preventDefault();
    fields.search.focus();
    fields.search.select();
  }
});
$("grid").addEventListener("focus", drawDetails);
$("grid").addEventListener("blur", drawDetails);

// Start

const timeline = new Timeline($("timeline"), $("then"), goBack);
grid.about = about;
labels.get(instanceType); // which is needed as soon as there are devices
fields.search.addEventListener("focus", suggestTerms);
fields.search.addEventListener("input", suggestTerms);
fields.by.addEventListener("change", suggestLabels);
fields.label.addEventListener("focus", suggestLabels);
addEventListener("hashchange", () => {
  query.restore();
  draw();
});
new ResizeObserver(() => draw()).observe($("grid"));
const waiting = new Waiting($("waiting"), { counted: drawTrouble });
follow(take, tell);
