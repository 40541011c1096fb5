// The head of the page: one sentence for all purgatories, their links, and what a background tab shows.

import { byId, duration, element, fill, inSeconds, number, write } from "./elements.js";

// Milliseconds between two sentences for a screen reader.
const QUIET = 10_000;
// Seconds by which a loop is slow, and blocked.
const SLOW = 0.1;
const BLOCKED = 1;
// More purgatories than these are in a menu.
const TABS = 6;

let spokenAt = -Infinity;

export const stallWord = (stall) => stall >= BLOCKED ? "blocked" : stall >= SLOW ? "slow" : "";

// The alarms of a purgatory in a word each, the worst first.
export const alarms = ({ fullness, refused, failed, missed, connected }) => [
  fullness === "full" && "full", refused && "refusing", failed && "failing", missed && "missing changes", connected === false && "disconnected",
  fullness === "nearly full" && fullness,
].filter(Boolean);

// The seconds over which something is counted, such as "last minute".
export const past = (seconds) => Math.abs(seconds - 60) < 5 ? "last minute" : `last ${inSeconds(1000 * Math.max(1, seconds))}`;

function inWords({ fullness, refused, refused_in: seconds, failed, missed, connected }) {
  const counted = (count, word, span) => count ? [`${number.format(count)} ${word} in the ${past(span)}`] : [];
  return [
    ...(fullness ? [fullness] : []),
    ...(refused && failed && past(seconds) === past(60) ? counted(refused, `refused and ${number.format(failed)} failed`, 60)
      : [...counted(refused, "refused", seconds), ...counted(failed, "failed", 60)]),
    ...(missed ? [`${number.format(missed)} changes missed`] : []),
    ...(connected === false ? ["the relay is not connected"] : []),
  ].join(", ");
}

const WORDS = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"];
const address = (name) => `?purgatory=${encodeURIComponent(name)}`;
const link = (name) => element("a", { href: address(name) }, element("bdi", {}, name));

export function showHealth({ health, name: shown }, stall) {
  const weight = (each) => (alarms(each)[0] === "nearly full" ? 0.5 : alarms(each).length) + (each.refused + each.failed) / 1e12;
  const ill = health.filter((each) => alarms(each).length).sort((one, other) => weight(other) - weight(one));
  const well = health.filter((each) => !alarms(each).length);
  const loop = stallWord(stall);
  const sentences = [
    ...ill.map((each) => [link(each.name), `: ${inWords(each)}. `]),
    ...(loop ? [["The event loop: ", loop, ` for up to ${duration(stall)}. `]] : []),
  ];
  const calm = !sentences.length;
  if (calm) sentences.push([["", "All is well.", "Both are well."][health.length] ?? `All ${WORDS[health.length] ?? number.format(health.length)} are well.`]);
  else if (well.length > TABS) sentences.push([`${number.format(well.length)} others: well.`]);
  else if (well.length) sentences.push([...well.flatMap(({ name }, index) => [index ? ", " : "", link(name)]), ": well."]);
  fill(byId("health"), sentences.flat());
  byId("health").className = calm ? "" : ill.some((each) => alarms(each)[0] !== "nearly full") || loop === "blocked" ? "alarm" : "warning";
  speak(byId("health").textContent);
  showTabs(health, shown);
  const alarm = byId("health").className === "alarm";
  const { pending } = health.find(({ name }) => name === shown);
  const [worst] = ill;
  document.title = alarm ? `\u25b2 ${worst ? `${worst.name}: ${alarms(worst).join(", ")}` : `the event loop: ${loop}`}` : `${number.format(pending)} pending \u00b7 ${shown}`;
  const icon = alarm ? "icon-alarm.svg" : "icon.svg";
  if (byId("icon").getAttribute("href") !== icon) byId("icon").setAttribute("href", icon);
}

// Have a screen reader say the sentence when it changes, and not too often.
function speak(sentence) {
  const now = performance.now();
  if (now - spokenAt < QUIET || byId("spoken").textContent === sentence) return;
  spokenAt = now;
  write("spoken", sentence);
}

export function showTabs(tabs, shown) {
  // A single purgatory needs no tab, unless the address has the name of another one.
  byId("tabs").hidden = tabs.length < 2 && shown !== null;
  const links = byId("tabs").hidden ? [] : tabs.map((tab) => {
    const { name, pending } = tab;
    const words = pending === undefined ? [] : alarms(tab);
    const made = element("a", { href: address(name), className: words.length ? "ill" : "", data: { key: name } }, element("bdi", {}, name));
    if (pending !== undefined) made.append(" ", element("span", { className: "count" }, number.format(pending)), element("span", { className: "unseen" }, " pending"));
    if (words.length) made.append(", ", element("span", { className: "words" }, words.join(", ")));
    if (name === shown) made.setAttribute("aria-current", "page");
    return made;
  });
  if (links.length <= TABS) {
    fill(byId("tabs"), links);
    return;
  }
  // The menu stays, with what is written into its search. Only its links change.
  if (!byId("menu")) {
    const search = element("input", { type: "search", placeholder: "Search", ariaLabel: "Search the purgatories" });
    search.addEventListener("input", () => narrow());
    fill(byId("tabs"), []);
    byId("tabs").append(element("details", {}, element("summary", {}), search, element("div", { id: "menu" })));
  }
  write(byId("tabs").querySelector("summary"), `${number.format(links.length)} purgatories`);
  fill(byId("menu"), links);
  narrow();
}

function narrow() {
  const wanted = byId("tabs").querySelector("input").value.toLowerCase();
  for (const each of byId("menu").children) each.hidden = !each.dataset.key.toLowerCase().includes(wanted);
}
