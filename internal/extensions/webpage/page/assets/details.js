// The details of one device, beside its cell.

import { commandsFor, copy } from "./commands.js";
import { make, makeButton, makeLetter, refill } from "./elements.js";
import { taintText } from "./grid.js";
import { shortAmount } from "./kinds.js";
import { ask } from "./labels.js";
import { isIncomplete, isNotReady, percent } from "./model.js";

const most = 12; // claims that are listed
const margin = 8; // pixels around the card

export class Details {
  #shown = "";
  #asked = "";
  #facts = null; // what the API server says of the device whose details are kept

  // search is called with what is to be searched, drawn when the card has another size, and
  // close when it is to be closed.
  constructor(element, { search, drawn, close }) {
    this.element = element;
    this.search = search;
    this.drawn = drawn;
    this.close = close;
  }

  // show fills the card; kept is one that stays until it is closed. What is shown already
  // is left alone, so that a selection stays. Of the past no more is known.
  show(found, kept, past) {
    const { item, pool, device, index } = found;
    const described = pool.kind.describe(index);
    if (kept && !past) this.#ask(found);
    const facts = kept && !past && this.#facts ? { ...described, ...this.#facts } : described;
    const shown = JSON.stringify([item.id, pool.slices, device, facts, kept, past]);
    this.element.hidden = false;
    if (shown === this.#shown) return;
    this.#shown = shown;
    const parts = [this.#title(device, kept), this.#list(found, facts, kept)];
    if (kept) parts.push(...factLists(facts));
    if (kept && past) parts.push(make("p", "note", "This is of the past, of which no more is remembered."));
    else if (kept) parts.push(commandList(found));
    refill(this.element, parts);
    this.element.classList.toggle("kept", kept);
    this.element.setAttribute("aria-label", `Device ${device.name}`);
  }

  // ask asks once for what the feed does not say.
  async #ask({ item, pool, device }) {
    const query = new URLSearchParams({ driver: pool.driver, pool: pool.name, device: device.name });
    const asked = `${item.id} ${pool.generation} ${query}`;
    if (asked === this.#asked) return;
    this.#asked = asked;
    this.#facts = null;
    const facts = await ask(`api/device?${query}`);
    if (asked !== this.#asked) return;
    this.#facts = facts;
    this.drawn();
  }

  #list({ item, pool, device }, facts, kept) {
    const list = make("dl", "");
    const say = (term, text, className = "") => list.append(make("dt", "", term), make("dd", className, text));
    const link = (term, text, search) => (kept ? list.append(make("dt", "", term), this.#link(text, search)) : say(term, text));
    if (item.node !== undefined) link("Node", item.node, `node=${item.node}`);
    if (isNotReady(item)) say("", "not Ready", "warn");
    say("Pool", pool.name);
    say("Driver", pool.driver);
    if (facts.whole) say("Part of", facts.whole);
    if (facts.product) say("Product", facts.memory ? `${facts.product}, ${shortAmount(facts.memory)}` : facts.product);
    if (facts.uuid) say("UUID", facts.uuid);
    if (isIncomplete(pool)) say("Incomplete", `${pool.slices} of ${pool.resourceSliceCount} slices`, "warn");
    if (device.shared) say("Shared", `${percent(device.used ?? 0)} taken`);
    if (device.blockedBy) say("Blocked by", device.blockedBy);
    for (const claim of (device.claims ?? []).slice(0, most)) sayClaim(say, link, claim);
    const left = (device.claims?.length ?? 0) - most;
    if (left > 0) say("", `and ${left} more claims`);
    for (const taint of device.taints ?? []) {
      say("Taint", taintText(taint));
      if (taint.rule) say("by", `DeviceTaintRule ${taint.rule}`);
      say("since", new Date(taint.timeAdded).toLocaleString());
    }
    return list;
  }

  #title(device, kept) {
    const heading = make("h2", "", makeLetter(device.state), make("span", "", device.name), make("span", "state", device.state));
    if (!kept) return heading;
    const button = makeButton("×", () => this.close());
    button.className = button.value = "close";
    button.ariaLabel = "Close";
    button.title = "Close (Escape)";
    return make("div", "header", heading, button);
  }

  // link is a text that, clicked, is searched.
  #link(text, search) {
    const button = makeButton(text, () => this.search(search));
    button.className = "link";
    button.title = `Search ${search}`;
    button.value = search;
    return make("dd", "", button);
  }

  hide() {
    this.element.hidden = true;
    this.#shown = this.#asked = "";
    this.#facts = null;
  }

  // place puts the card beside a cell, never over it: where all of it fits, or else where
  // most of it does. What does not fit is scrolled to.
  place(cell) {
    const { style } = this.element;
    if (!cell) {
      style.visibility = "hidden";
      return;
    }
    const whole = cell.parentElement.classList.contains("head") ? cell.closest(".box") : cell;
    const at = whole.getBoundingClientRect();
    style.left = `${margin}px`; // where it is as wide as it can be
    style.maxHeight = "none";
    const { offsetWidth: width, offsetHeight: height } = this.element;
    const all = innerHeight - 2 * margin;
    const sides = [
      { room: innerHeight - at.bottom - 2 * margin, left: at.left - 14, top: () => at.bottom + margin },
      { room: at.top - 2 * margin, left: at.left - 14, top: (tall) => at.top - margin - tall },
      { room: innerWidth - at.right - 2 * margin < width ? 0 : all, left: at.right + margin, top: (tall) => at.top - tall / 2 },
      { room: at.left - 2 * margin < width ? 0 : all, left: at.left - margin - width, top: (tall) => at.top - tall / 2 },
    ];
    const side = sides.find(({ room }) => room >= height) ?? sides.reduce((best, one) => (one.room > best.room ? one : best));
    const tall = Math.min(height, side.room, all);
    style.maxHeight = `${Math.floor(tall)}px`;
    style.top = `${Math.max(margin, Math.min(side.top(tall), innerHeight - margin - tall))}px`;
    style.left = `${Math.max(margin, Math.min(side.left, innerWidth - width - margin))}px`;
    style.visibility = "visible";
  }
}

function sayClaim(say, link, claim) {
  const words = [claim.prepared ? "prepared" : "allocated"];
  if (claim.adminAccess) words.push("admin access");
  if (claim.shareID) words.push(`share ${claim.shareID}`);
  const name = `${claim.namespace}/${claim.name}`;
  link("Claim", name, `claim=${name}`);
  say("", words.join(", "));
  const taken = Object.entries(claim.consumedCapacity ?? {}).map(([name, amount]) => `${name} ${amount}`);
  if (taken.length) say("takes", taken.join(", "));
  if (claim.failure) say("Failure", claim.failure, "warn");
  for (const pod of claim.pods ?? []) link("Pod", pod, `pod=${pod} namespace=${claim.namespace}`);
}

function factLists({ attributes = {}, capacity = {} }) {
  return [["Attributes", attributes], ["Capacity", capacity]].flatMap(([heading, facts]) => {
    const names = Object.keys(facts).sort();
    if (names.length === 0) return [];
    return [make("h3", "", heading), make("dl", "", ...names.flatMap((name) => [make("dt", "", name), make("dd", "", facts[name])]))];
  });
}

function commandList(found) {
  const entries = commandsFor(found).map(({ about, text }) => {
    const button = makeButton("Copy", async () => {
      button.textContent = (await copy(text)) ? "Copied" : "Select it by hand";
      button.ariaLabel = `${button.textContent}: ${about}`;
    });
    button.value = text;
    button.ariaLabel = `Copy: ${about}`;
    return make("li", "", make("span", "about", about), make("code", "", text), button);
  });
  return make("ul", "commands", ...entries);
}
