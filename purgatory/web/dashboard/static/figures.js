// The cards: one figure each, with a text that explains it.

import { byId, duration, number, plural, timeOfDay, write } from "./elements.js";

// The share of the limit from which a card warns.
const NEARLY_FULL = 0.8;
// Seconds over which refusals are counted.
const WINDOW = 60;

const sum = (counts) => counts.reduce((total, count) => total + count, 0);
// Moments of the last minute, with what the process had refused by then.
let refusals = [];

function mark(id, className) {
  byId(`card-${id}`).className = `card ${className}`;
}

export function showFigures({ process, statistics, rates, stalls, pending_sample: sample, now, time, since }) {
  const { pending, max_pending: limit, refused, missed_changes: missed } = statistics;
  for (const [field, value] of Object.entries(statistics)) write(field, value === null ? "none" : number.format(value));
  const start = since === null ? "" : `since ${timeOfDay(time - (now - since), time)}`;

  write("more-pending", limit === null ? "no limit" : `of ${number.format(limit)}${pending >= limit ? ", full" : ""}`);
  mark("pending", limit === null || pending < NEARLY_FULL * limit ? "" : pending < limit ? "warning" : "alarm");
  byId("card-pending").style.setProperty("--share", limit === null ? 0 : Math.min(1, pending / limit));

  // Another process has counts of its own.
  const { instance } = process;
  refusals = refusals.filter((each) => each.instance === instance && each.now > now - WINDOW);
  const latest = refusals.length ? refused - refusals[0].refused : 0;
  const seconds = refusals.length ? Math.round(now - refusals[0].now) : 0;
  refusals.push({ instance, now, refused });
  write("more-refused", latest ? `${number.format(latest)} in the last ${plural(seconds, "second")}` : start);
  mark("refused", latest ? "alarm" : "");

  for (const outcome of ["completed", "expired", "failed"]) {
    write(`more-${outcome}`, `${number.format(sum(rates.ended[outcome]))} in the last minute`);
  }
  mark("failed", sum(rates.ended.failed) ? "alarm" : "");
  mark("missed_changes", missed ? "alarm" : "");
  for (const field of ["watched", "keys"]) write(`more-${field}`, "");
  for (const field of ["expired_untried", "cancelled", "missed_changes", "wakeups", "slices"]) write(`more-${field}`, start);
  write("since", start && `Totals count ${start}.`);

  const [oldest] = sample.oldest;
  write("oldest-age", oldest ? oldest.age === null ? "unknown" : duration(Math.max(0, oldest.age)) : "none");
  write("more-oldest-age", oldest ? `${oldest.kind}${sample.sampled ? ", of a sample" : ""}` : "");

  const measured = stalls.filter((stall) => stall !== null);
  write("worst-stall", measured.length ? duration(Math.max(...measured)) : "not yet");
  write("more-worst-stall", measured.length ? `in ${plural(measured.length, "measured second")}` : "measured while you look");
}

// The part "messages" or "relay" of the page, which not every purgatory has.
export function showPart(id, figures) {
  byId(`${id}-part`).hidden = !figures.length;
  [...byId(id).children].forEach((card, index) => {
    if (index >= figures.length) return;
    const [, figure] = figures[index];
    card.className = `card ${figure === false ? "alarm" : ""}`;
    const value = card.querySelector(".value");
    if (value.textContent !== inWords(figure)) value.textContent = inWords(figure);
  });
}

function inWords(figure) {
  if (figure === null) return "unknown";
  return typeof figure === "boolean" ? (figure ? "yes" : "no") : number.format(figure);
}

// An explanation is shown while its button has the focus or the pointer. Escape hides it.
addEventListener("keydown", ({ key }) => {
  if (key === "Escape" && document.activeElement?.matches(".card button")) document.activeElement.blur();
});
