// The query is what is asked for: a search, and how what is found is grouped. It is in
// the fields, and in the address, so that it can be sent to others.

import { quoted, suggest } from "./search.js";

const former = ["node", "driver", "state"]; // fields of their own in addresses of old

export class Query {
  closed = new Set(); // the groups that are closed

  // fields are search, by and label, with the lists of suggestions; changed is called when
  // something else is asked for.
  constructor(fields, changed) {
    this.fields = fields;
    this.restore();
    const set = () => {
      this.#store();
      changed();
    };
    fields.search.addEventListener("input", set);
    fields.by.addEventListener("change", () => {
      this.closed.clear();
      set();
      if (fields.by.value === "label") fields.label.focus();
    });
    fields.label.addEventListener("change", set);
    this.set = (text) => {
      fields.search.value = text;
      set();
    };
  }

  get text() {
    return this.fields.search.value;
  }

  get grouping() {
    return { by: this.fields.by.value, label: this.fields.label.value.trim() };
  }

  // restore reads the address.
  restore() {
    const { search, by, label } = this.fields;
    const asked = new URLSearchParams(location.hash.slice(1));
    const terms = former.filter((key) => asked.get(key)).map((key) => `${key}=${quoted(asked.get(key))}`);
    search.value = [...terms, asked.get("search") ?? ""].filter(Boolean).join(" ");
    by.value = asked.get("group") ?? "";
    if (by.selectedIndex < 0) by.value = "";
    label.value = asked.get("label") ?? "";
    this.#showLabel();
  }

  #store() {
    this.#showLabel();
    const { by, label } = this.grouping;
    const asked = Object.entries({ search: this.text.trim(), group: by, label: by === "label" ? label : "" }).filter(([, value]) => value);
    history.replaceState(null, "", asked.length ? "#" + new URLSearchParams(asked) : location.pathname + location.search);
  }

  #showLabel() {
    this.fields.label.parentElement.hidden = this.fields.by.value !== "label";
  }

  // toggle closes or opens a group.
  toggle(group) {
    if (!this.closed.delete(group)) this.closed.add(group);
  }

  // tell says below the field what is wrong with the search.
  tell({ problem, meant }) {
    const { search, problem: element } = this.fields;
    this.propose(element, problem, meant);
    element.hidden = problem === "";
    search.setAttribute("aria-invalid", String(problem !== ""));
  }

  // propose says something in an element, and asks there whether something else was meant.
  propose(element, said, meant) {
    const [text, button] = element.children;
    if (text.textContent !== said) text.textContent = said;
    button.hidden = meant === "";
    button.textContent = meant && `Did you mean ${meant}?`;
    button.onclick = () => {
      this.set(meant);
      this.fields.search.focus();
    };
  }

  // suggestTerms lists what the last term of the search can be.
  suggestTerms(known) {
    fill(this.fields.terms, suggest(this.text, known));
  }

  // suggestLabels lists the labels of nodes.
  suggestLabels(names) {
    fill(this.fields.labels, names);
  }
}

function fill(list, texts) {
  list.replaceChildren(...texts.map((text) => new Option("", text)));
}
