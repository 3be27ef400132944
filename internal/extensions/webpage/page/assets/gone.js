// The devices that claims have and that nobody publishes any more, and what could not be read.

import { make, refill } from "./elements.js";
import { plural } from "./groups.js";

export class Gone {
  #told = "";

  constructor(section) {
    this.section = section;
    this.summary = section.querySelector("summary");
    this.list = section.querySelector("ul");
    this.unseen = section.querySelector("p");
  }

  // show draws what an answer says, unless it is there already. The drivers count all
  // devices, the answer has the first.
  show({ drivers, gone, unseen }) {
    const count = drivers.reduce((n, driver) => n + (driver.gone ?? 0), 0); // of the past none is remembered
    const told = JSON.stringify([count, gone, unseen]);
    if (told === this.#told) return;
    this.#told = told;
    this.section.hidden = count === 0 && unseen === "";
    this.section.querySelector("details").hidden = count === 0;
    this.summary.textContent = `${plural(count, "device")} of claims that no slice publishes any more`;
    this.unseen.textContent = unseen;
    this.unseen.hidden = unseen === "";
    refill(this.list, gone.map(item));
  }
}

function item({ node, driver, pool, name, claims = [] }) {
  const pods = claims.flatMap(({ namespace, pods = [] }) => pods.map((pod) => `${namespace}/${pod}`));
  const reason = [`claim ${claims.map((claim) => `${claim.namespace}/${claim.name}`).join(", ")}`, ...pods.map((pod) => `Pod ${pod}`)].join(", ");
  return make("li", "", make("span", "who", `${driver}/${pool}/${name}`), make("span", "where", node ? `node ${node}` : "shared"), make("span", "reason", reason));
}
