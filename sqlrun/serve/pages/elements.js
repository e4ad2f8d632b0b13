// Elements made by name. What stands inside is text or an element, so no value can become markup.

export const at = (id) => document.getElementById(id);

// Make an element: properties that it has are set, others become attributes; null inside is left out.
export function make(name, properties = {}, ...inside) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key === "class") element.className = value;
    else if (key in element) element[key] = value;
    else element.setAttribute(key, value);
  }
  element.append(...inside.filter((one) => one != null));
  return element;
}

// Write a text where it isn't already: what listens for changes hears only of real ones.
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}
