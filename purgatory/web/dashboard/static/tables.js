// The tables: the hottest keys, and the operations that the viewer searches for.

import { byId, code, duration, element, fill, number, timeOfDay, update } from "./elements.js";

// A row of a table, and on a small screen a card. Each cell begins with its heading.
export function row(key, ...cells) {
  const made = element("tr", { data: { key } }, ...cells.map(([heading, ...content]) => element("td", { data: { heading } }, ...content)));
  made.setAttribute("role", "row");
  for (const cell of made.cells) cell.setAttribute("role", "cell");
  return made;
}

function fillTable(id, rows, emptyText) {
  const [body] = byId(id).tBodies;
  if (rows.length) {
    fill(body, rows);
    return;
  }
  const columns = byId(id).tHead.rows[0].cells.length;
  fill(body, [element("tr", { data: { key: "nothing" } }, element("td", { className: "none", colSpan: columns }, emptyText))]);
}

export const keyList = (keys, more) => code(keys.join(", ") + (more ? ` and ${number.format(more)} more` : ""));

function note(id, text) {
  byId(`${id}-note`).textContent = text;
  byId(`${id}-note`).hidden = !text;
}

let byTries = false;
let latestSample = null;

function showHottest() {
  const { hottest, busiest, sampled } = latestSample;
  const keys = byTries ? busiest : hottest;
  const amount = ({ watchers, tries }) => byTries ? tries : watchers;
  const highest = Math.max(...keys.map(amount));
  fillTable("hottest", keys.map((hot) => {
    const share = element("span", { className: "share" });
    share.style.setProperty("--share", amount(hot) / highest);
    return row(
      hot.key,
      ["Key", share, element("button", { type: "button", className: "key", title: "Show its operations", data: { search: hot.key } }, code(hot.key))],
      ["Watchers", `${number.format(hot.watchers)}${hot.more ? "+" : ""}`],
      ["Tries a second", hot.tries === null ? "–" : number.format(Number(hot.tries.toPrecision(2)))],
    );
  }), byTries ? "No check of a key has tried an operation in the last minute." : "No key is watched.");
  for (const [id, pressed] of [["by-watchers", !byTries], ["by-tries", byTries]]) byId(id).setAttribute("aria-pressed", pressed);
  const uncounted = keys.some(({ tries }) => tries === null) ? "–: the key is not among the ten with the most tries. " : "";
  note("hottest", uncounted + (sampled ? "Sampled: there are more keys than a snapshot reads." : ""));
}

export function showKeys(sample) {
  latestSample = sample;
  update("hottest-part", showHottest);
}

for (const [id, chosen] of [["by-watchers", false], ["by-tries", true]]) {
  byId(id).addEventListener("click", () => {
    byTries = chosen;
    if (latestSample) showHottest();
  });
}

function inTries(tries) {
  if (tries === null) return "unknown";
  // The first try is the offer's.
  return tries === 1 ? "1 try, as it was offered" : `${number.format(tries)} tries`;
}

const operationCell = (kind, keys, more, text) => ["Operation", element("bdi", {}, kind), " ", keyList(keys, more), ...(text ? [" ", element("small", {}, code(text))] : [])];

function pendingRow({ number: place, kind, keys, more_keys: more, age, tries, due, text }) {
  return row(
    `pending ${place}`,
    operationCell(kind, keys, more, text),
    ["Age", age === null ? "unknown" : duration(Math.max(0, age))],
    ["Tries", inTries(tries)],
    ["Due in", due === null ? "never" : duration(due)],
  );
}

function endedRow({ kind, keys, more_keys: more, at, waited, tries, error }, { now, time }) {
  return row(
    `ended ${at} ${kind} ${keys}`,
    operationCell(kind, keys, more, error),
    ["Waited", duration(waited)],
    ["Tries", inTries(tries)],
    ["Ended at", timeOfDay(time - (now - at), time)],
  );
}

// The oldest pending operations, or what a search has found.
export function showOperations(snapshot) {
  const { pending_sample: { oldest, sampled }, found } = snapshot;
  const state = found?.state ?? "pending";
  const operations = found?.operations ?? oldest;
  const headings = state === "pending" ? ["Operation", "Age", "Tries", "Due in"] : ["Operation", "Waited", "Tries", "Ended at"];
  [...byId("operations").tHead.rows[0].cells].forEach((cell, index) => { cell.textContent = headings[index]; });
  const rows = operations.map((operation) => state === "pending" ? pendingRow(operation) : endedRow(operation, snapshot));
  fillTable("operations", rows, found ? "No such operation was found." : "No operation is pending.");
  const more = found && found.count > operations.length ? `${state === "pending" ? "The oldest" : "The latest"} ${operations.length} of ${number.format(found.count)} that were found. ` : "";
  const partial = state === "pending"
    ? (found?.sampled ?? sampled) && "Sampled: the oldest operations on the keys that a snapshot reads."
    : "Of each outcome, the page knows the first operation of each second, and the latest twenty of these.";
  note("operations", more + (partial || ""));
}
