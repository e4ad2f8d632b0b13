// Creation of elements. Their content is text or elements, so no value can become markup.

export const at = (id) => document.getElementById(id);

// Create an element. A name that isn't a property of it becomes an attribute. Children that are null are skipped.
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

// Set an element's text if it differs, so that screen readers announce only real changes.
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}
