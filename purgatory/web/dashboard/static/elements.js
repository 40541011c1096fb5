// Elements of the page, and numbers and durations in words.
// Names, keys and errors come from users. They are inserted as text, never as markup.

export const number = new Intl.NumberFormat("en");

export const byId = (id) => document.getElementById(id);

export function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  Object.assign(made, properties);
  made.append(...children);
  return made;
}

export function svgElement(tag, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

export function duration(seconds) {
  if (seconds < 0) return `-${duration(-seconds)}`;
  for (const [unit, size] of [["µs", 1e-6], ["ms", 1e-3], ["s", 1]]) {
    const amount = seconds / size;
    // These limits prevent "1000 ms" where the rounded value is 1 s.
    if (amount < 999.5 && (unit !== "s" || amount < 99.95)) {
      return `${amount.toFixed(amount < 9.995 && amount !== 0 ? 2 : amount < 99.95 && amount !== 0 ? 1 : 0)} ${unit}`;
    }
  }
  const minutes = Math.round(seconds / 60);
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${Math.floor(seconds % 60)} s`;
  if (minutes < 48 * 60) return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
  return `${number.format(Math.round(seconds / 86400))} days`;
}

// A duration without zeros at its end, for widths and bounds: "4 ms", not "4.00 ms".
export function roundDuration(seconds) {
  return duration(seconds).replace(/\.0+ /, " ").replace(/(\.[1-9])0 /, "$1 ");
}
