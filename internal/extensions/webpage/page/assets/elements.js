// Elements, and the focus where what has it is drawn anew.

import { letters } from "./model.js";

// make makes an element with a class and with what is in it, texts or elements.
export function make(tag, className, ...children) {
  const element = document.createElement(tag);
  element.className = className;
  element.append(...children);
  return element;
}

export function makeButton(text, act) {
  const button = make("button", "", text);
  button.type = "button";
  button.addEventListener("click", act);
  return button;
}

// makeLetter shows the letter of a state, in its colour, beside a word that says the same.
export function makeLetter(state) {
  const cell = make("span", `cell ${state}`, letters[state]);
  cell.ariaHidden = "true";
  return cell;
}

// refill gives an element other children. The button that had the focus has it again, or
// the element where that button has gone. Buttons are the same if their values are.
export function refill(element, children) {
  const had = document.activeElement;
  const inside = had !== element && element.contains(had);
  element.replaceChildren(...children);
  if (!inside) return;
  const again = [...element.querySelectorAll("button")].find(({ value }) => value === had.value);
  (again ?? element).focus({ preventScroll: true });
}
