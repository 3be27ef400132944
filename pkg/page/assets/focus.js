// The focus, where what has it is drawn anew.

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
