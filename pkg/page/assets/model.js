// The model is what is known, and which of it is asked for.

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

const compare = new Intl.Collator("en", { numeric: true }).compare;

function order(a, b) {
  return (a.node !== undefined) - (b.node !== undefined) || compare(nameOf(a), nameOf(b)) || compare(a.id, b.id);
}

export class Model {
  drivers = [];
  byId = new Map();
  ids = [];

  // apply takes an answer of api/devices.
  apply(answer) {
    if (answer.since === undefined) this.byId.clear();
    const before = answer.since === undefined ? -1 : this.byId.size;
    for (const item of answer.items) this.byId.set(item.id, item);
    const added = this.byId.size !== before;
    for (const id of answer.removed ?? []) this.byId.delete(id);
    this.drivers = answer.drivers;
    if (added || answer.removed) this.ids = [...this.byId.values()].sort(order).map((item) => item.id);
  }

  // select returns the items that a filter lets through, each with those of its
  // pools that it does.
  select({ driver, node, state }) {
    const part = node.trim().toLowerCase();
    const selected = [];
    for (const id of this.ids) {
      const item = this.byId.get(id);
      const pools = driver ? item.pools.filter((pool) => pool.driver === driver) : item.pools;
      if ((driver || state) && pools.length === 0) continue;
      if (part && !nameOf(item).toLowerCase().includes(part)) continue;
      if (state && !pools.some((pool) => pool.devices.some((device) => device.state === state))) continue;
      selected.push({ item, pools });
    }
    return selected;
  }

  // find returns the pool and the device of a place, or nothing.
  find(place) {
    const item = this.byId.get(place.id);
    const pool = item?.pools.find((pool) => pool.driver === place.driver && pool.name === place.pool);
    const device = pool?.devices.find((device) => device.name === place.device);
    return device && { item, pool, device };
  }
}

export function samePlace(a, b) {
  return a === b || (a && b && a.id === b.id && a.driver === b.driver && a.pool === b.pool && a.device === b.device);
}
