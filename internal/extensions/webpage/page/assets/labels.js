// Labels of nodes are asked for when they are needed, and again when nodes come.

const pause = 2000; // milliseconds between two questions, while a fleet grows

export class Labels {
  waiting = 0; // questions without an answer yet
  #known = new Map(); // the values of a label, by node
  #due = new Map();

  // changed is called when there is an answer.
  constructor(changed) {
    this.changed = changed;
  }

  // get returns the values of a label by node, as far as they are known.
  get(name) {
    if (!this.#known.has(name)) {
      this.#known.set(name, new Map());
      this.#ask(name);
    }
    return this.#known.get(name);
  }

  // refresh asks again for all that was asked for.
  refresh() {
    for (const name of this.#known.keys()) {
      if (!this.#due.has(name)) this.#due.set(name, setTimeout(() => this.#ask(name), pause));
    }
  }

  async #ask(name) {
    this.#due.delete(name);
    this.waiting++;
    const { values } = (await ask(`api/labels?name=${encodeURIComponent(name)}`)) ?? {};
    this.waiting--;
    if (values) this.#known.set(name, new Map(Object.entries(values).flatMap(([value, nodes]) => nodes.map((node) => [node, value]))));
    this.changed();
  }

  // names lists the labels that there are.
  async names() {
    return (await ask("api/labels"))?.names ?? [];
  }
}

// ask returns the answer of an address, or nothing where there is none.
export async function ask(address) {
  try {
    const response = await fetch(address, { cache: "no-store" });
    return response.ok ? await response.json() : null;
  } catch {
    return null; // what follows the devices says that the sidecar is gone
  }
}
