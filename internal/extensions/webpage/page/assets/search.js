// A search is terms, joined by blanks. A device is found if all of them are true of it.

import { lastPart } from "./kinds.js";
import { isIncomplete, isNotReady, nameOf, states as ofDevices } from "./model.js";
import { nearest } from "./suggest.js";

const states = [...ofDevices, "incomplete", "notready"]; // the last two of pools and nodes

const claims = (is) => (device, has) => device.claims?.some((claim) => is(claim, has)) ?? false;

function stateOfPool(item, pool, has) {
  return (pool !== undefined && isIncomplete(pool) && has("incomplete")) || (isNotReady(item) && has("notready"));
}

// What keys ask: of the pool with its item, of the device, or of what devices of the
// kind are. Each is true if has is true of a text.
const keys = {
  state: { device: (device, has) => has(device.state), pool: stateOfPool },
  driver: { pool: (item, pool, has) => has(pool?.driver) },
  node: { pool: (item, pool, has) => has(nameOf(item)) },
  pool: { pool: (item, pool, has) => has(pool?.name) },
  device: { device: (device, has) => has(device.name) },
  pod: { device: claims((claim, has) => claim.pods?.some(has)) },
  claim: { device: claims((claim, has) => has(`${claim.namespace}/${claim.name}`)) },
  namespace: { device: claims((claim, has) => has(claim.namespace)) },
  product: { kind: ({ product }, has) => has(product) },
  model: { kind: (described, has) => has(described.product) || factsOf(described, "model").some(has) },
  instance: { pool: (item, pool, has, instances) => has(instances?.get(item.node)) },
  taint: { device: (device, has) => device.taints?.some((taint) => has(`${taint.key}=${taint.value ?? ""}:${taint.effect}${taint.rule ? ` ${taint.rule}` : ""}`)) ?? false },
  failure: { device: claims((claim, has) => has(claim.failure)) },
  blocked: { device: (device, has) => has(device.blockedBy) },
};

const word = {
  pool: keys.node.pool,
  device: claims((claim, has) => has(`${claim.namespace}/${claim.name}`) || claim.pods?.some(has)),
  kind: keys.product.kind,
};

// split divides a text at blanks that are not in quotes.
function split(text) {
  const terms = text.match(/(?:"[^"]*"|[^\s"])+|"[^"]*$/g) ?? [];
  return terms.map((term) => {
    const at = term.indexOf("=");
    const bare = (part) => part.replaceAll('"', "").toLowerCase();
    return at > 0 && !term.startsWith('"') ? { source: term, key: term.slice(0, at), value: bare(term.slice(at + 1)) } : { source: term, value: bare(term) };
  });
}

// quoted is a value as it is written in a term.
export function quoted(value) {
  return /\s/.test(value) ? `"${value}"` : value;
}

// namesIn are the names of the attributes and capacities of kinds, with and without
// their domains.
function namesIn(kinds) {
  const names = new Set();
  for (const kind of new Set(kinds)) {
    for (const { attributes = {}, capacity = {} } of kind.descriptions) {
      for (const name of [...Object.keys(attributes), ...Object.keys(capacity)]) names.add(name).add(lastPart(name));
    }
  }
  return names;
}

// factsOf are the values of the attributes and capacities that have a name, in lower case.
function factsOf({ attributes = {}, capacity = {} }, asked) {
  const is = ([name]) => name.toLowerCase() === asked || lastPart(name).toLowerCase() === asked;
  return [...Object.entries(attributes), ...Object.entries(capacity)].filter(is).map(([, value]) => value);
}

export class Search {
  // problem says what is wrong with the text. It is empty where nothing is.
  problem = "";
  meant = ""; // what may have been meant instead

  constructor(text, kinds, instances) {
    this.text = text;
    this.instances = instances;
    this.terms = [];
    if ((text.match(/"/g) ?? []).length % 2) this.problem = "A quote is not closed.";
    for (const { key, value } of split(text)) {
      const asks = key === undefined ? word : this.#asks(key, kinds);
      const has = (text) => text !== undefined && text.toLowerCase().includes(value);
      if (asks) this.terms.push({ ...asks, has, ofKind: new Map() });
    }
  }

  #asks(key, kinds) {
    const asked = key.toLowerCase();
    if (Object.hasOwn(keys, asked)) return keys[asked];
    this.names ??= [...namesIn(kinds)].map((name) => name.toLowerCase());
    if (this.names.includes(asked)) return { kind: (described, has) => factsOf(described, asked).some(has) };
    this.problem = `"${key}" is neither an attribute or capacity that is searched, nor one of ${Object.keys(keys).join(", ")}.`;
    const name = nearest(asked, [...Object.keys(keys), ...this.names]);
    if (name) this.meant = this.text.replace(`${key}=`, `${name}=`);
    return null;
  }

  // find returns for each pool of an item which devices are found: 1 for each that is, or
  // nothing where all are. It returns nothing for an item without such devices.
  find(item) {
    if (this.terms.length === 0) return item.pools.map(() => undefined);
    if (item.pools.length === 0) return this.terms.every((term) => this.#ofPool(term, item)) ? [] : null;
    let any = false;
    const found = item.pools.map((pool) => {
      const marks = this.#marks(item, pool);
      any ||= !marks || marks.includes(1);
      return marks;
    });
    return any ? found : null;
  }

  #ofPool(term, item, pool) {
    return term.pool !== undefined && term.pool(item, pool, term.has, this.instances);
  }

  #marks(item, pool) {
    const terms = this.terms.filter((term) => !this.#ofPool(term, item, pool));
    if (terms.length === 0) return undefined;
    const marks = new Uint8Array(pool.devices.length).fill(1);
    for (const term of terms) {
      const ofKind = this.#ofKind(term, pool.kind);
      for (let i = 0; i < marks.length; i++) {
        if (marks[i] && !ofKind?.[i] && !term.device?.(pool.devices[i], term.has)) marks[i] = 0;
      }
    }
    return marks;
  }

  // ofKind says once for all pools of a kind of which devices a term is true.
  #ofKind(term, kind) {
    if (!term.kind) return undefined;
    if (!term.ofKind.has(kind)) term.ofKind.set(kind, kind.wholes.map((_, i) => term.kind(kind.describe(i), term.has)));
    return term.ofKind.get(kind);
  }
}

const most = 20; // suggestions

// values are what a key can ask for. Names of nodes, Pods and claims are many.
const values = {
  state: () => states,
  driver: ({ drivers }) => drivers,
  instance: ({ instances }) => new Set(instances?.values() ?? []),
  product: ({ kinds }) => new Set([...kinds].flatMap((kind) => kind.descriptions.map(({ product }) => product).filter(Boolean))),
  node: ({ items }) => items.flatMap((item) => item.node ?? []),
  pod: ({ items }) => claimsOf(items, (claim) => claim.pods ?? []),
  claim: ({ items }) => claimsOf(items, (claim) => `${claim.namespace}/${claim.name}`),
  namespace: ({ items }) => claimsOf(items, (claim) => claim.namespace),
};

function claimsOf(items, part) {
  const found = new Set();
  for (const { pools } of items) {
    for (const { devices } of pools) for (const { claims = [] } of devices) for (const one of claims.flatMap(part)) found.add(one);
  }
  return found;
}

// suggest completes the last term of a text: a key, the value of one, or a word that is a value.
export function suggest(text, known) {
  const at = text.search(/\S*$/);
  const [before, last] = [text.slice(0, at), text.slice(at)];
  const [key, value] = last.split("=");
  const beginsWith = (part) => (one) => one.toLowerCase().startsWith(part.toLowerCase());
  const ofKey = (key, part) => [...(values[key]?.(known) ?? [])].filter(beginsWith(part)).map((one) => `${key}=${quoted(one)}`);
  const names = [...Object.keys(keys), ...namesIn(known.kinds)].map((name) => `${name}=`).filter(beginsWith(last));
  const ends = value !== undefined ? ofKey(key, value) : last === "" ? names : [...names, ...Object.keys(values).flatMap((key) => ofKey(key, last))];
  return [...new Set(ends)].slice(0, most).map((end) => before + end);
}

// meant is a search that finds something in place of one that finds nothing: with one word
// as it may have been meant, or "" where no word is like that.
export function meant(text, known) {
  for (const { source, key, value } of split(text)) {
    const asked = key?.toLowerCase();
    const candidates = key === undefined ? [...states, ...values.node(known)] : [...(values[asked]?.(known) ?? [])];
    if (value === "" || candidates.some((one) => key !== undefined && one.toLowerCase().includes(value))) continue;
    const one = nearest(value, candidates);
    if (!one || (key === undefined && !states.includes(one) && one.toLowerCase() === value)) continue;
    return text.replace(source, () => (key === undefined ? (states.includes(one) ? `state=${one}` : quoted(one)) : `${key}=${quoted(one)}`));
  }
  return "";
}
