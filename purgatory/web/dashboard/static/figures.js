// The cards: one figure each. Five are above all else, the others are in the part "Internals".

import { alarms, past, stallWord } from "./health.js";
import { byId, duration, number, plural, timeOfDay, write } from "./elements.js";

// Show a figure with a word for its alarm, if any.
function card(id, value, more, alarm = "") {
  write(id, value);
  write(`more-${id}`, [alarm, more].filter(Boolean).join(", "));
  const kind = ["nearly full", "slow"].includes(alarm) ? "warning" : alarm ? "alarm" : "";
  byId(`card-${id}`).className = `card ${kind}`.trim();
}

export const worstStall = (stalls) => Math.max(0, ...stalls.filter((stall) => stall !== null));

export function showFigures({ name, health, statistics, stalls, pending_sample: sample, now, time, since }) {
  const own = health.find((each) => each.name === name);
  const words = alarms(own);
  const start = since === null ? "" : `since ${timeOfDay(time - (now - since), time)}`;
  const { pending, max_pending: limit } = statistics;
  for (const field of ["watched", "keys", "completed", "expired", "expired_untried", "cancelled", "wakeups", "slices"]) {
    card(field, number.format(statistics[field]), ["watched", "keys"].includes(field) ? "" : start);
  }
  card("max_pending", limit === null ? "none" : number.format(limit), "");
  card("missed_changes", number.format(statistics.missed_changes), start, own.missed ? "missing changes" : "");
  card("pending", number.format(pending), limit === null ? "no limit" : `of ${number.format(limit)}`, own.fullness);
  byId("card-pending").style.setProperty("--share", limit === null ? 0 : Math.min(1, pending / limit));
  const total = (field) => `${number.format(statistics[field])} ${start}`;
  card("refused", number.format(own.refused), `in the ${past(own.refused_in)}; ${total("refused")}`, words.find((word) => word === "refusing"));
  card("failed", number.format(own.failed), `in the last minute; ${total("failed")}`, words.find((word) => word === "failing"));
  write("since", start && `Totals count ${start}.`);

  const [oldest] = sample.oldest;
  card("oldest_age", oldest ? oldest.age === null ? "unknown" : duration(Math.max(0, oldest.age)) : "none", oldest ? `${oldest.kind}${sample.sampled ? ", of a sample" : ""}` : "");

  const measured = stalls.filter((stall) => stall !== null);
  const worst = worstStall(stalls);
  card("worst_stall", measured.length ? duration(worst) : "not yet", measured.length ? `in ${plural(measured.length, "measured second")}` : "measured while you look", stallWord(worst));
}

// The part "messages" or "relay" of the page, which not every purgatory has.
export function showPart(id, figures) {
  byId(`${id}-part`).hidden = !figures.length;
  [...byId(id).children].forEach((each, index) => {
    if (index >= figures.length) return;
    const [, figure] = figures[index];
    each.className = figure === false ? "card alarm" : "card";
    write(each.querySelector(".value"), inWords(figure));
  });
}

function inWords(figure) {
  if (figure === null) return "unknown";
  return typeof figure === "boolean" ? (figure ? "yes" : "no") : number.format(figure);
}

byId("explain").addEventListener("click", () => {
  const explained = document.body.classList.toggle("explained");
  byId("explain").setAttribute("aria-pressed", explained);
});
