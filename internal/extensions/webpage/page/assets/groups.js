// Groups divide what is selected into sections with headings: nodes by a label or by
// what they have, or their devices by an attribute.

import { amountOf } from "./kinds.js";
import { compare, nameOf, percent, productsOf } from "./model.js";
import { number } from "./totals.js";

// racks are the labels that name a rack; the first that a node has counts.
export const racks = ["topology.kubernetes.io/rack", "nvidia.com/gpu.clique"];

// attributes are those that devices are grouped by: the last parts of their names, in
// lower case, since drivers have no common one. Each machine counts its own, so a group is of
// one node.
const attributes = {
  numa: { name: "NUMA node", lasts: ["numanode", "numanodeid", "numa"] },
  pcie: { name: "PCIe root", lasts: ["pcieroot", "pciroot"] },
};

// labelsOf names the labels of nodes that a grouping needs.
export function labelsOf({ by, label }) {
  if (by === "rack") return racks;
  return by === "label" && label ? [label] : [];
}

// group returns sections. Each has a heading, or none where there is but one.
export function group(selected, grouping, labels) {
  if (grouping.by in attributes) return sections(byAttribute(selected, attributes[grouping.by]));
  const titles = {
    label: (item) => titled(grouping.label, labels, [grouping.label], item),
    rack: (item) => titled("rack", labels, racks, item),
    profile: (item) => profileOf(item) || [...new Set(item.pools.map((pool) => pool.driver))].join(" + ") || null,
  };
  if (grouping.by in titles && (grouping.by !== "label" || grouping.label)) return sections(byTitle(selected, titles[grouping.by]));
  return byKind(selected);
}

// profileOf tells hardware that is divided from what is not.
function profileOf(item) {
  const products = productsOf(item);
  return products && item.pools.some((pool) => pool.kind.shape.divided) ? `${products}, divided` : products;
}

function titled(name, labels, asked, item) {
  for (const label of asked) {
    const value = labels.get(label)?.get(item.node);
    if (value !== undefined) return `${name} ${value || '""'}`;
  }
  return null;
}

// byKind has pools that nodes share before the nodes.
function byKind(selected) {
  const shared = selected.filter(({ item }) => item.node === undefined);
  if (shared.length === 0 || shared.length === selected.length) return [{ selected }];
  const nodes = selected.filter(({ item }) => item.node !== undefined);
  return [{ heading: { text: "Pools that nodes share" }, selected: shared }, { heading: { text: "Nodes" }, selected: nodes }];
}

// byTitle puts what has no title last.
function byTitle(selected, titleOf) {
  const groups = new Map();
  for (const one of selected) put(groups, one.item.node === undefined ? "Pools that nodes share" : (titleOf(one.item) ?? ""), one);
  return groups;
}

function byAttribute(selected, { name, lasts }) {
  const groups = new Map();
  for (const { item, pools } of selected) {
    const parts = new Map();
    for (const { pool, found } of pools) {
      for (const [value, shape] of pool.kind.by(lasts)) put(parts, value === undefined ? `without ${name}` : `${name} ${value}`, { pool, shape, found, partial: true });
    }
    for (const [title, some] of parts) put(groups, `${nameOf(item)}, ${title}`, { item, pools: some });
  }
  return groups;
}

function put(groups, key, value) {
  if (groups.has(key)) groups.get(key).push(value);
  else groups.set(key, [value]);
}

function sections(groups) {
  const titles = [...groups.keys()].sort((a, b) => (a === "") - (b === "") || compare(a, b));
  return titles.map((title) => ({
    heading: { text: title || "without", key: title, detail: detailOf(groups.get(title)) },
    selected: groups.get(title),
  }));
}

function detailOf(selected) {
  const nodes = new Set(selected.filter(({ item }) => item.node !== undefined).map(({ item }) => nameOf(item))).size;
  let devices = 0;
  const usage = { used: 0, total: 0 };
  for (const { pools } of selected) {
    for (const part of pools) {
      const { used, total } = part.partial ? usageOf(part) : part.pool.usage;
      usage.used += used;
      usage.total += total;
      devices += part.shape.order.length;
    }
  }
  const counts = nodes && !selected[0].pools[0]?.partial ? [plural(nodes, "node")] : [];
  return [...counts, plural(devices, "device"), `${percent(usage.total ? usage.used / usage.total : 0)} taken`].join(", ");
}

// usageOf counts whole devices in a part of a pool. Of one that is not taken as a whole,
// as much is taken as its parts have of its memory.
function usageOf({ pool, shape }) {
  let used = 0;
  for (const { at, count } of shape.boxes) {
    const [whole, ...parts] = shape.order.slice(at, at + count);
    const memory = amountOf(pool.kind.describe(whole).memory);
    const ofPart = (i) => (amountOf(pool.kind.describe(i).memory) / memory || 1) * takenOf(pool.devices[i]);
    used += takenOf(pool.devices[whole]) || Math.min(1, parts.reduce((sum, i) => sum + ofPart(i), 0));
  }
  return { used, total: shape.boxes.length };
}

function takenOf(device) {
  if (device.shared) return device.used ?? 0;
  return device.claims?.some((claim) => !claim.adminAccess) ? 1 : 0;
}

// plural is a number of things.
export function plural(n, word) {
  return `${number(n)} ${word}${n === 1 ? "" : "s"}`;
}
