// Elements of the page, and numbers, times and durations in words.
// Names, keys and errors come from users. They are inserted as text, never as markup.

export const number = new Intl.NumberFormat("en");

export const byId = (id) => document.getElementById(id);

export function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  const { data, ...others } = properties;
  Object.assign(made, others);
  Object.assign(made.dataset, data);
  made.append(...children);
  return made;
}

export function svgElement(tag, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

// The selected text, if any. It is kept, because to ask for it is to have the page lay everything out at once.
let selection = null;
document.addEventListener("selectionchange", () => { selection = getSelection().isCollapsed ? null : getSelection(); });

// Call `show`, unless a text in the part of the page with this id is selected: then the part stays as it is.
export function update(id, show) {
  const part = byId(id);
  const held = selection?.containsNode(part, true) ?? false;
  part.classList.toggle("held", held);
  if (held) return;
  const focused = part.contains(document.activeElement) ? document.activeElement : null;
  show();
  // A row that moves to another place loses the focus.
  if (focused?.isConnected && document.activeElement !== focused) focused.focus({ preventScroll: true });
}

// Change the children of `parent` to be like `wanted`. A child stays the same node, found by its data-key or else by
// its place, so that it keeps the focus.
export function fill(parent, wanted) {
  const keyed = new Map([...parent.childNodes].filter((child) => child.dataset?.key).map((child) => [child.dataset.key, child]));
  let place = parent.firstChild;
  for (const each of wanted) {
    const node = typeof each === "string" ? document.createTextNode(each) : each;
    const key = node.dataset?.key;
    const present = key ? keyed.get(key) : place;
    if (!present || present.nodeName !== node.nodeName || present.dataset?.key !== key) {
      parent.insertBefore(node, place);
      continue;
    }
    keyed.delete(key);
    if (present === place) place = place.nextSibling;
    else parent.insertBefore(present, place);
    imitate(present, node);
  }
  while (place) {
    const next = place.nextSibling;
    place.remove();
    place = next;
  }
}

function imitate(present, node) {
  if (node.nodeType === Node.TEXT_NODE) {
    if (present.data !== node.data) present.data = node.data;
    return;
  }
  for (const { name } of [...present.attributes]) if (!node.hasAttribute(name) && name !== "style") present.removeAttribute(name);
  for (const { name, value } of node.attributes) {
    // The policy of the page forbids the attribute "style", but not the object.
    if (name !== "style" && present.getAttribute(name) !== value) present.setAttribute(name, value);
  }
  if (present.style.cssText !== node.style.cssText) present.style.cssText = node.style.cssText;
  fill(present, [...node.childNodes]);
}

// The element's text, without touching it when it is the same: a screen reader reads each change aloud.
export function write(where, text) {
  const node = typeof where === "string" ? byId(where) : where;
  if (node.textContent !== text) node.textContent = text;
}

// A user's key, operation or error. Each run of other letters than ASCII is isolated, so that Hebrew or Arabic letters do
// not change the order of what is around them.
export function code(text) {
  const made = element("code", { dir: "ltr" });
  made.append(...text.split(/([^\p{ASCII}]+(?: +[^\p{ASCII}]+)*)/u).map((part, index) => index % 2 ? element("bdi", {}, part) : part));
  return made;
}

// A duration in words: 310 µs, 4.75 s, 2 min 58 s, 3 h 5 min, 4 days. The report writes durations in the same way.
export function duration(seconds) {
  if (seconds < 0) return `-${duration(-seconds)}`;
  const whole = Math.round(seconds);
  if (whole >= 120) {
    const minutes = Math.round(seconds / 60);
    if (whole < 7200) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
    if (minutes < 48 * 60) return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
    return `${number.format(Math.round(seconds / 86400))} days`;
  }
  // The limit prevents "1000 ms" where the rounded value is 1 s.
  const [unit, size] = [["µs", 1e-6], ["ms", 1e-3], ["s", 1]].find(([, each]) => seconds / each < 999.5);
  const amount = seconds / size;
  return `${amount.toFixed(unit === "µs" || amount >= 99.95 ? 0 : amount >= 9.995 ? 1 : 2)} ${unit}`;
}

// A duration without zeros at its end, for widths and bounds: "4 ms", not "4.00 ms".
export function roundDuration(seconds) {
  return duration(seconds).replace(/\.0+ /, " ").replace(/(\.[1-9])0 /, "$1 ");
}

// An age in whole seconds, or more.
export const inSeconds = (milliseconds) => milliseconds < 999.5 ? "0 s" : roundDuration(Math.round(milliseconds / 1000));

const clock = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium" });
const calendar = new Intl.DateTimeFormat("en-CA", { dateStyle: "short" });

// The time of day in the viewer's zone, of a moment in seconds since 1970; on another day than `now` with the date.
export function timeOfDay(seconds, now) {
  const [day, today] = [seconds, now].map((each) => calendar.format(each * 1000));
  return `${day === today ? "" : `${day} `}${clock.format(seconds * 1000)}`;
}

export const plural = (count, word, ending = "s") => `${number.format(count)} ${word}${count === 1 ? "" : ending}`;
