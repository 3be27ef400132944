// The details of one device, beside its cell.

import { taintText } from "./grid.js";
import { letters, percent } from "./model.js";

const most = 12; // claims that are listed

export class Details {
  constructor(element) {
    this.element = element;
  }

  // show fills the card; kept is one that stays until it is closed.
  show({ item, pool, device }, kept) {
    const list = document.createElement("dl");
    const say = (term, text, className) => list.append(text_("dt", term), text_("dd", text, className));
    if (item.node !== undefined) say("Node", item.node);
    say("Pool", pool.name);
    say("Driver", pool.driver);
    if (pool.slices !== pool.resourceSliceCount) say("Incomplete", `${pool.slices} of ${pool.resourceSliceCount} slices`, "warn");
    if (device.shared) say("Shared", `${percent(device.used ?? 0)} taken`);
    if (device.blockedBy) say("Blocked by", device.blockedBy);
    for (const claim of (device.claims ?? []).slice(0, most)) sayClaim(say, claim);
    const left = (device.claims?.length ?? 0) - most;
    if (left > 0) say("", `and ${left} more claims`);
    for (const taint of device.taints ?? []) {
      say("Taint", taintText(taint));
      say("since", new Date(taint.timeAdded).toLocaleString());
    }
    this.element.replaceChildren(title(device), list);
    this.element.classList.toggle("kept", kept);
    this.element.hidden = false;
  }

  hide() {
    this.element.hidden = true;
  }

  // place puts the card below a cell, or above it where there is no room.
  place(cell) {
    if (!cell) {
      this.element.style.visibility = "hidden";
      return;
    }
    const at = cell.getBoundingClientRect();
    const { offsetWidth: width, offsetHeight: height } = this.element;
    const below = at.bottom + 8;
    const top = below + height <= innerHeight - 8 ? below : Math.max(8, at.top - 8 - height);
    const left = Math.max(8, Math.min(at.left - 14, innerWidth - width - 8));
    this.element.style.top = `${top}px`;
    this.element.style.left = `${left}px`;
    this.element.style.visibility = "visible";
  }
}

function sayClaim(say, claim) {
  const words = [claim.prepared ? "prepared" : "allocated"];
  if (claim.adminAccess) words.push("admin access");
  if (claim.shareID) words.push(`share ${claim.shareID}`);
  say("Claim", `${claim.namespace}/${claim.name}`);
  say("", words.join(", "));
  const taken = Object.entries(claim.consumedCapacity ?? {}).map(([name, amount]) => `${name} ${amount}`);
  if (taken.length) say("takes", taken.join(", "));
  if (claim.failure) say("Failure", claim.failure, "warn");
  if (claim.pods) say(claim.pods.length > 1 ? "Pods" : "Pod", claim.pods.join(", "));
}

function title(device) {
  const heading = text_("h2", "");
  const cell = text_("span", letters[device.state], `cell ${device.state}`);
  cell.ariaHidden = "true";
  heading.append(cell, text_("span", device.name), text_("span", device.state, "state"));
  return heading;
}

function text_(tag, text, className = "") {
  const element = document.createElement(tag);
  element.textContent = text;
  element.className = className;
  return element;
}
