// The tables: the hottest keys, the oldest pending operations, the latest failures.

import { byId, duration, element, number } from "./elements.js";

function row(...cells) {
  return element("tr", {}, ...cells.map((cell, index) => element("td", { className: index ? "number" : "" }, ...cell)));
}

export function fillTable(id, rows) {
  byId(id).tBodies[0].replaceChildren(...rows.map((cells) => row(...cells)));
}

function fillTableOr(emptyText, id, rows) {
  fillTable(id, rows);
  if (rows.length) return;
  const columns = byId(id).tHead.rows[0].cells.length;
  byId(id).tBodies[0].append(element("tr", {}, element("td", { className: "none", colSpan: columns }, emptyText)));
}

function showNote(id, text) {
  const part = byId(`${id}-part`);
  const note = part.querySelector(".note") ?? part.appendChild(element("p", { className: "note" }));
  note.textContent = text;
  note.hidden = !text;
}

const keyList = (keys, more) => element("code", {}, keys.join(", "), more ? ` and ${number.format(more)} more` : "");

export function showHottest({ hottest, sampled }) {
  const highest = hottest[0]?.watchers ?? 1;
  fillTableOr("No key is watched.", "hottest", hottest.map(({ key, watchers, more }) => {
    const share = element("span", { className: "share" });
    share.style.setProperty("--share", watchers / highest);
    return [[share, element("code", {}, key)], [`${number.format(watchers)}${more ? "+" : ""}`]];
  }));
  showNote("hottest", sampled ? "Sampled: there are more keys than a snapshot reads." : "");
}

export function showOldest({ oldest, sampled }) {
  fillTableOr("No operation is pending.", "oldest", oldest.map(({ kind, keys, more_keys: more, age, tries, due, text }) => [
    [kind, " ", keyList(keys, more), ...(text ? [element("small", {}, text)] : [])],
    [age === null ? "unknown" : duration(Math.max(0, age))],
    [tries === null ? "unknown" : number.format(tries)],
    [due === null ? "never" : duration(due)],
  ]));
  showNote("oldest", sampled ? "Sampled: the oldest operations on the keys that a snapshot reads." : "");
}

// The part "messages" or "relay" of the page, which not every purgatory has.
export function showPart(id, figures) {
  byId(`${id}-part`).hidden = !figures.length;
  byId(id).replaceChildren(...figures.map(([title, figure]) => (
    element("div", { className: figure === false ? "failed" : "" }, element("dt", {}, title), element("dd", {}, inWords(figure)))
  )));
}

function inWords(figure) {
  if (figure === null) return "unknown";
  return typeof figure === "boolean" ? (figure ? "yes" : "no") : number.format(figure);
}

export function showFailures({ failures, now }) {
  byId("failures-part").hidden = !failures.length;
  fillTable("failures", failures.map(({ at, kind, keys, error }) => [
    [kind, " ", keyList(keys, 0)], [element("code", {}, error)], [duration(Math.max(0, now - at))],
  ]));
  for (const { cells } of byId("failures").tBodies[0].rows) cells[1].className = "";
}
