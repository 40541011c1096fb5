// The timing wheel: a ring for each level, with its slots and a hand at the present time.

import { byId, duration, element, fill, number, roundDuration, svgElement, write } from "./elements.js";
import { row } from "./tables.js";

// The least number of operations for each shade of a slot.
const SHADES = [1, 10, 100, 1000];
// A hand that needs fewer seconds for a turn is drawn as a blurred ring.
const BLURRED = 1;
// The hands go on for this many seconds after a snapshot. A page that receives no more snapshots stops them.
const FRESH = 3;

const CENTRE = 220;
const OUTER = 212;
const INNER = 62;

// The latest wheel, and when it came, by performance.now().
let wheel = null;
let arrived = 0;
// For each level: its hand, the ticks of a slot, the seconds of a turn, and the slots with the tick at which each begins.
let rings = [];

export const isWheelOpen = () => byId("internals").open;

function point(radius, turn) {
  const angle = 2 * Math.PI * turn - Math.PI / 2;
  return `${(CENTRE + radius * Math.cos(angle)).toFixed(2)} ${(CENTRE + radius * Math.sin(angle)).toFixed(2)}`;
}

function sector(inner, outer, from, to) {
  const large = to - from > 0.5 ? 1 : 0;
  return `M${point(outer, from)}A${outer} ${outer} 0 ${large} 1 ${point(outer, to)}`
    + `L${point(inner, to)}A${inner} ${inner} 0 ${large} 0 ${point(inner, from)}Z`;
}

const shade = (load) => SHADES.findLastIndex((least) => load >= least) + 1;

export function showWheel(latest, wakeupsPerSecond) {
  wheel = latest;
  arrived = performance.now();
  const ringWidth = Math.min(46, (OUTER - INNER) / wheel.levels.length);
  const parts = [];
  rings = wheel.levels.map((slots, level) => {
    const inner = INNER + level * ringWidth;
    const outer = inner + ringWidth - 4;
    const middle = (inner + outer) / 2;
    const width = wheel.size ** level;
    // By the wheel's own time: operations that are overdue are behind the hand, not a turn ahead of it.
    const position = Math.floor(wheel.wheel_now / width);
    const gap = Math.min(0.0018 * (OUTER / outer), 0.15 / wheel.size);
    parts.push(svgElement("circle", { class: "track", cx: CENTRE, cy: CENTRE, r: middle, "stroke-width": outer - inner }));
    if (wheel.size <= 128) {
      for (let slot = 0; slot < wheel.size; slot++) {
        parts.push(svgElement("path", { class: "mark-line", d: `M${point(inner, slot / wheel.size)}L${point(outer, slot / wheel.size)}` }));
      }
    }
    const ring = { width, inner, outer, slots: [], hand: null, turn: width * wheel.size * wheel.tick };
    for (const [slot, load] of slots) {
      // The window rolls: a slot that the hand has passed is used again, for the next turn.
      const begins = (position + ((slot - position) % wheel.size + wheel.size) % wheel.size) * width;
      const next = wheel.next_slot !== null && begins === wheel.next_slot;
      const drawn = svgElement(
        "path",
        {
          class: `load-${shade(load)}${next ? " next" : ""}`,
          d: sector(inner, outer, slot / wheel.size + gap, (slot + 1) / wheel.size - gap),
        },
        svgElement("title", {}, `Level ${level}, slot ${slot}: ${operations(load)}, ${beginning((begins - wheel.now) * wheel.tick)}`),
      );
      parts.push(drawn);
      ring.slots.push({ begins, drawn });
    }
    ring.hand = ring.turn < BLURRED
      ? svgElement("circle", { class: "blur", cx: CENTRE, cy: CENTRE, r: middle })
      : svgElement("line", { class: "hand", x1: CENTRE, x2: CENTRE, y1: CENTRE - inner + 1, y2: CENTRE - outer - 1 });
    parts.push(ring.hand);
    return ring;
  });
  parts.push(
    svgElement("text", { x: CENTRE, y: CENTRE - 16 }, isExpiring() ? "expiring" : wheel.wakeup === null ? "next wake-up" : "next wake-up in"),
    svgElement("text", { x: CENTRE, y: CENTRE + 6, class: "big", id: "wakeup" }),
    svgElement("text", { x: CENTRE, y: CENTRE + 24 }, isExpiring() ? "" : `${number.format(wakeupsPerSecond)} per second`),
  );
  byId("wheel").replaceChildren(...parts);
  byId("wheel").setAttribute("aria-label", wheelInWords());
  showLegend();
  showLevels();
  turnHands();
}

const operations = (load) => `${number.format(load)}${load === wheel.count_limit ? " or more" : ""} operation${load === 1 ? "" : "s"}`;

const beginning = (seconds) => seconds > 0 ? `begins in ${duration(seconds)}` : `began ${duration(-seconds)} ago`;

// While the reaper expires operations, no timer is armed to wake it.
const isExpiring = () => wheel.wakeup === null && wheel.next_slot !== null && wheel.next_slot <= wheel.now;

function wheelInWords() {
  const occupied = wheel.levels.reduce((sum, slots) => sum + slots.length, 0);
  const wakeup = isExpiring()
    ? "operations are expiring now"
    : wheel.wakeup === null ? "no wake-up is due" : `the next wake-up is in ${duration(Math.max(0, wheel.wakeup))}`;
  return `The timing wheel: ${number.format(wheel.tasks)} operations in ${occupied} slots on ${wheel.levels.length} levels; ${wakeup}. The table below shows each level.`;
}

// The numbers of operations that the shade at `index` stands for.
function shadeInWords(least, index) {
  const following = SHADES[index + 1] ?? Infinity;
  const limit = wheel.count_limit;
  const isLimited = least <= limit && limit < following && wheel.levels.some((slots) => slots.some(([, load]) => load === limit));
  if (following === Infinity || isLimited) return `${number.format(least)} or more`;
  return `${number.format(least)} to ${number.format(following - 1)}`;
}

function showLegend() {
  const entry = (className, text) => element("span", {}, element("i", { className }), text);
  fill(byId("loads"), [
    ...SHADES.map((least, index) => entry(`load-${index + 1}`, shadeInWords(least, index))),
    entry("passed", "passed"),
    entry("hand", "now"),
    entry("round next", "next slot"),
  ]);
}

function showLevels() {
  fill(byId("levels").tBodies[0], wheel.levels.map((slots, level) => {
    const width = wheel.tick * wheel.size ** level;
    const load = slots.reduce((sum, [, load]) => sum + load, 0);
    const more = slots.some(([, load]) => load === wheel.count_limit) ? "+" : "";
    return row(
      `level ${level}`,
      ["Level", String(level)],
      ["Slot", roundDuration(width)],
      ["Turn", roundDuration(width * wheel.size)],
      ["Occupied", `${slots.length} of ${wheel.size}`],
      ["Operations", `${number.format(load)}${more}`],
    );
  }));
}

// Move the hands to the present time, between two snapshots too, and mark the slots that they have passed since.
export function turnHands() {
  if (wheel === null) return;
  const elapsed = Math.min((performance.now() - arrived) / 1000, FRESH);
  const now = wheel.now + elapsed / wheel.tick;
  for (const ring of rings) {
    if (ring.hand.tagName === "line") {
      ring.hand.setAttribute("transform", `rotate(${((now / ring.width / wheel.size) % 1) * 360} ${CENTRE} ${CENTRE})`);
    }
    for (const slot of ring.slots) slot.drawn.classList.toggle("passed", wheel.now < slot.begins && slot.begins <= now);
  }
  write("wakeup", isExpiring() ? "now" : wheel.wakeup === null ? "none" : duration(Math.max(0, wheel.wakeup - (wheel.wakeup > FRESH ? elapsed : 0))));
}
