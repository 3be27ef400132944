// A kind is what pools with the same devices have in common: what the devices are,
// and which are parts of others.

const units = ["", "Ki", "Mi", "Gi", "Ti", "Pi"];

// shortAmount is an amount of memory as people say it: 81152Mi are 79.3Gi.
export function shortAmount(text) {
  let amount = amountOf(text);
  if (Number.isNaN(amount)) return text;
  let at = 0;
  for (; amount >= 1024 && at < units.length - 1; at++) amount /= 1024;
  return Math.round(amount * 10) / 10 + units[at];
}

// amountOf is a quantity in bytes, as Kubernetes writes it with units of 1024.
export function amountOf(text) {
  const [, digits, unit] = /^(\d+)(Ki|Mi|Gi|Ti|Pi)?$/.exec(text) ?? [];
  return digits === undefined ? NaN : Number(digits) * 1024 ** units.indexOf(unit ?? "");
}

// lastPart is the name of an attribute without its domain.
export function lastPart(name) {
  return name.slice(name.lastIndexOf("/") + 1);
}

// Shape is the order in which devices are drawn, each followed by its parts. A box is a
// device with them: its place in the order, and how many devices it has with its parts.
export class Shape {
  constructor(order, boxes) {
    this.order = order;
    this.boxes = boxes;
    this.divided = boxes.some((box) => box.count > 1);
  }
}

function shapeOf(indices, wholes) {
  const among = new Set(indices);
  const parts = new Map();
  const tops = [];
  for (const i of indices) {
    if (!among.has(wholes[i])) tops.push(i);
    else if (parts.has(wholes[i])) parts.get(wholes[i]).push(i);
    else parts.set(wholes[i], [i]);
  }
  const order = [];
  const boxes = [];
  for (const top of tops) {
    const inside = parts.get(top) ?? [];
    boxes.push({ at: order.length, count: 1 + inside.length });
    order.push(top, ...inside);
  }
  return new Shape(order, boxes);
}

export class Kind {
  #subsets = new Map();

  constructor(descriptions) {
    this.descriptions = descriptions;
  }

  // learn takes the names of the devices from the first pool of the kind.
  learn(names) {
    if (this.shape) return;
    const index = new Map(names.map((name, i) => [name, i]));
    this.wholes = names.map((_, i) => index.get(this.descriptions[i]?.whole) ?? -1);
    this.shape = shapeOf([...names.keys()], this.wholes);
  }

  // describe is what a device is.
  describe(i) {
    return this.descriptions[i] ?? {};
  }

  // attribute finds the first of the attributes, by the last parts of their names in
  // lower case, that a device or its whole has.
  attribute(i, lasts) {
    for (const at of [i, this.wholes[i]]) {
      const found = Object.entries(this.descriptions[at]?.attributes ?? {}).find(([name]) => lasts.includes(lastPart(name).toLowerCase()));
      if (found) return found[1];
    }
    return undefined;
  }

  // by divides the devices by an attribute: a shape for each of its values.
  by(lasts) {
    const key = lasts.join();
    if (this.#subsets.has(key)) return this.#subsets.get(key);
    const indices = new Map();
    for (const i of this.wholes.keys()) {
      const value = this.attribute(i, lasts);
      if (indices.has(value)) indices.get(value).push(i);
      else indices.set(value, [i]);
    }
    const shapes = new Map([...indices].map(([value, list]) => [value, shapeOf(list, this.wholes)]));
    this.#subsets.set(key, shapes);
    return shapes;
  }

  // summary counts the devices that are no parts, by product and memory.
  get summary() {
    if (this.summed !== undefined) return this.summed;
    const counts = new Map();
    for (const box of this.shape.boxes) {
      const { product, memory } = this.describe(this.shape.order[box.at]);
      if (!product) continue;
      const text = memory ? `${product}, ${shortAmount(memory)}` : product;
      counts.set(text, (counts.get(text) ?? 0) + 1);
    }
    const texts = [...counts].map(([text, count]) => `${count} × ${text}`);
    this.summed = texts.length > 2 ? `${texts.slice(0, 2).join(" + ")} + …` : texts.join(" + ");
    return this.summed;
  }
}
