// The model is what is known.

import { Kind } from "./kinds.js";

export const states = ["free", "blocked", "allocated", "prepared", "failing", "tainted"];
export const letters = { free: "", blocked: "B", allocated: "A", prepared: "P", failing: "F", tainted: "T" };

// percent is a part of 1 as people read it, neither nothing nor all unless it is that.
export function percent(part) {
  const whole = Math.round(part * 100);
  if (part > 0 && whole === 0) return "<1 %";
  if (part < 1 && whole === 100) return ">99 %";
  return `${whole} %`;
}

// nameOf is the name of a node, or of the pool that nodes share.
export function nameOf(item) {
  return item.node ?? item.pools[0].name;
}

// productsOf is what the devices of a node are.
export function productsOf(item) {
  return [...new Set(item.pools.map((pool) => pool.kind.summary).filter(Boolean))].join(" + ");
}

export function isIncomplete(pool) {
  return pool.slices !== pool.resourceSliceCount;
}

// isNotReady says that nobody gets a device of the item, which is a node.
export function isNotReady(item) {
  return item.notReady === true;
}

export const compare = new Intl.Collator("en", { numeric: true }).compare;

function order(a, b) {
  return (a.node !== undefined) - (b.node !== undefined) || compare(nameOf(a), nameOf(b)) || compare(a.id, b.id);
}

export class Model {
  drivers = [];
  gone = [];
  unseen = "";
  byId = new Map();
  ids = [];

  // kinds are known from another model, if there is one.
  constructor(kinds = new Map()) {
    this.kinds = kinds;
  }

  // apply takes an answer of api/devices.
  apply(answer) {
    if (answer.since === undefined) {
      this.byId.clear();
      this.kinds.clear();
    }
    for (const { id, devices } of answer.kinds ?? []) this.kinds.set(id, new Kind(devices));
    const before = answer.since === undefined ? -1 : this.byId.size;
    for (const item of answer.items) {
      for (const pool of item.pools) this.#learn(pool);
      this.byId.set(item.id, item);
    }
    const added = this.byId.size !== before;
    for (const id of answer.removed ?? []) this.byId.delete(id);
    this.drivers = answer.drivers;
    this.gone = answer.gone ?? [];
    this.unseen = answer.unseen ?? "";
    if (added || answer.removed) this.ids = [...this.byId.values()].sort(order).map((item) => item.id);
    return added;
  }

  // notReady counts the nodes that are not Ready.
  get notReady() {
    return this.ids.filter((id) => isNotReady(this.byId.get(id))).length;
  }

  // learn has a pool know its kind itself, not only the id.
  #learn(pool) {
    const kind = this.kinds.get(pool.kind) ?? new Kind([]);
    kind.learn(pool.devices.map((device) => device.name));
    pool.kind = kind;
  }

  // select returns the items with devices that a search finds. Each has its pools with
  // the shape in which their devices are drawn, and which devices are found: found is
  // nothing where all are.
  select(search) {
    const selected = [];
    for (const id of this.ids) {
      const item = this.byId.get(id);
      const found = search.find(item);
      if (found) selected.push({ item, pools: item.pools.map((pool, i) => ({ pool, shape: pool.kind.shape, found: found[i] })) });
    }
    return selected;
  }

  // find returns the pool and the device of a place, or nothing.
  find(place) {
    const item = this.byId.get(place.id);
    const pool = item?.pools.find((pool) => pool.driver === place.driver && pool.name === place.pool);
    const index = pool?.devices.findIndex((device) => device.name === place.device) ?? -1;
    return index < 0 ? undefined : { item, pool, index, device: pool.devices[index] };
  }
}

export function samePlace(a, b) {
  return a === b || (a && b && a.id === b.id && a.driver === b.driver && a.pool === b.pool && a.device === b.device);
}
