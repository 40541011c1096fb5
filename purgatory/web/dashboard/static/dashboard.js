// Everything shown that is a user's (names, keys, errors) goes in as text, never as markup.

const OUTCOMES = ["completed", "expired", "cancelled", "failed"];
const SHADES = [1, 10, 100, 1000];
// A hand that turns faster than this many seconds a turn is a blur, and is drawn as one.
const TOO_FAST = 1;

// For so many seconds after a snapshot the hands go on by themselves; then nobody knows any more.
const FRESH = 3;
// Seconds to wait for an answer, which comes within one or so: a blocked event loop gives none, nor does a connection half gone.
const PATIENCE = 5;

const number = new Intl.NumberFormat("en");
const still = matchMedia("(prefers-reduced-motion: reduce)");
const shown = Number(new URLSearchParams(location.search).get("purgatory") ?? 0);
const byId = (id) => document.getElementById(id);

// The latest snapshot, and when it came, by performance.now().
let latest = null;
let arrived = 0;
let paused = false;

function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  Object.assign(made, properties);
  made.append(...children);
  return made;
}

function drawn(tag, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

function duration(seconds) {
  if (seconds < 0) return `-${duration(-seconds)}`;
  for (const [unit, size] of [["µs", 1e-6], ["ms", 1e-3], ["s", 1]]) {
    const amount = seconds / size;
    // Not 1000 of one unit where it is 1 of the next.
    if (amount < 999.5 && (unit !== "s" || amount < 99.95)) {
      return `${amount.toFixed(amount < 9.995 && amount !== 0 ? 2 : amount < 99.95 && amount !== 0 ? 1 : 0)} ${unit}`;
    }
  }
  const minutes = Math.round(seconds / 60);
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${Math.floor(seconds % 60)} s`;
  if (minutes < 48 * 60) return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
  return `${number.format(Math.round(seconds / 86400))} days`;
}

// Round figures, for what is a round number of something.
function about(seconds) {
  return duration(seconds).replace(/\.0+ /, " ").replace(/(\.[1-9])0 /, "$1 ");
}

// Updating

function show(snapshot) {
  const before = latest ?? snapshot;
  const wakeups = Math.round((snapshot.statistics.wakeups - before.statistics.wakeups) / (snapshot.now - before.now || 1));
  latest = snapshot;
  arrived = performance.now();
  const { statistics, tabs, pending_sample: pendingSample } = snapshot;
  const name = tabs[shown].name;
  byId("name").textContent = name;
  document.title = `${number.format(statistics.pending)} pending · ${name}`;
  for (const [figure, value] of Object.entries(statistics)) byId(figure).textContent = number.format(value);
  showTabs(tabs);
  showWheel(snapshot.wheel, wakeups);
  showRates(snapshot.rates);
  showHistogram("waits", snapshot.waits, "ended");
  showHistogram("lateness", snapshot.lateness, "expired");
  showStalls(snapshot.stalls);
  showHottest(pendingSample);
  showOldest(pendingSample);
  showFailures(snapshot);
}

function showTabs(tabs) {
  byId("tabs").hidden = tabs.length < 2;
  const links = byId("tabs").children;
  tabs.forEach((tab, index) => {
    const link = links[index] ?? byId("tabs").appendChild(element("a", { href: `?purgatory=${index}` }));
    link.replaceChildren(tab.name, element("span", {}, number.format(tab.pending)));
    if (index === shown) link.setAttribute("aria-current", "page");
  });
}

// The wheel

const CENTRE = 220;
const OUTER = 212;
const INNER = 62;

function at(radius, turn) {
  const angle = 2 * Math.PI * turn - Math.PI / 2;
  return `${(CENTRE + radius * Math.cos(angle)).toFixed(2)} ${(CENTRE + radius * Math.sin(angle)).toFixed(2)}`;
}

function sector(inner, outer, from, to) {
  const large = to - from > 0.5 ? 1 : 0;
  return `M${at(outer, from)}A${outer} ${outer} 0 ${large} 1 ${at(outer, to)}`
    + `L${at(inner, to)}A${inner} ${inner} 0 ${large} 0 ${at(inner, from)}Z`;
}

const shade = (load) => SHADES.findLastIndex((least) => load >= least) + 1;

// Of each level drawn: its hand, its slots with the tick at which each begins, and how long a tick and a turn are.
let rings = [];

function showWheel(wheel, wakeups) {
  const band = Math.min(46, (OUTER - INNER) / wheel.levels.length);
  const parts = [];
  rings = wheel.levels.map((slots, level) => {
    const inner = INNER + level * band;
    const outer = inner + band - 4;
    const middle = (inner + outer) / 2;
    const width = wheel.size ** level;
    // Where the wheel itself is: what it has yet to expire is behind the hand, not a turn ahead of it.
    const position = Math.floor(wheel.reached / width);
    const gap = Math.min(0.0018 * (OUTER / outer), 0.15 / wheel.size);
    parts.push(drawn("circle", { class: "track", cx: CENTRE, cy: CENTRE, r: middle, "stroke-width": outer - inner }));
    if (wheel.size <= 128) {
      for (let slot = 0; slot < wheel.size; slot++) {
        parts.push(drawn("path", { class: "mark-line", d: `M${at(inner, slot / wheel.size)}L${at(outer, slot / wheel.size)}` }));
      }
    }
    const ring = { width, inner, outer, slots: [], hand: null, turn: width * wheel.size * wheel.tick };
    for (const [slot, load] of slots) {
      // The window rolls: a slot that the hand has passed is used again, for the turn after.
      const begins = (position + ((slot - position) % wheel.size + wheel.size) % wheel.size) * width;
      const next = wheel.next_slot !== null && begins === wheel.next_slot;
      const drawnSlot = drawn(
        "path",
        {
          class: `load-${shade(load)}${next ? " next" : ""}`,
          d: sector(inner, outer, slot / wheel.size + gap, (slot + 1) / wheel.size - gap),
        },
        drawn("title", {}, `Level ${level}, slot ${slot}: ${amount(load, wheel)}, ${beginning((begins - wheel.now) * wheel.tick)}`),
      );
      parts.push(drawnSlot);
      ring.slots.push({ begins, drawn: drawnSlot });
    }
    ring.hand = ring.turn < TOO_FAST
      ? drawn("circle", { class: "blur", cx: CENTRE, cy: CENTRE, r: middle })
      : drawn("line", { class: "hand", x1: CENTRE, x2: CENTRE, y1: CENTRE - inner + 1, y2: CENTRE - outer - 1 });
    parts.push(ring.hand);
    return ring;
  });
  parts.push(
    drawn("text", { x: CENTRE, y: CENTRE - 16 }, expiring(wheel) ? "expiring" : wheel.wakeup === null ? "next wake-up" : "next wake-up in"),
    drawn("text", { x: CENTRE, y: CENTRE + 6, class: "big", id: "wakeup" }),
    drawn("text", { x: CENTRE, y: CENTRE + 24 }, expiring(wheel) ? "" : `${number.format(wakeups)} a second`),
  );
  byId("wheel").replaceChildren(...parts);
  byId("wheel").setAttribute("aria-label", wheelInWords(wheel));
  showLoads(wheel);
  showLevels(wheel);
  turn();
}

const amount = (load, wheel) => `${number.format(load)}${load === wheel.most ? " or more" : ""} operation${load === 1 ? "" : "s"}`;

const beginning = (seconds) => seconds > 0 ? `from ${duration(seconds)} from now` : `begun ${duration(-seconds)} ago`;

// While the reaper is at work, nothing is to wake it.
const expiring = (wheel) => wheel.wakeup === null && wheel.next_slot !== null && wheel.next_slot <= wheel.now;

function wheelInWords(wheel) {
  const occupied = wheel.levels.reduce((sum, slots) => sum + slots.length, 0);
  const wakeup = expiring(wheel) ? "what is due is expiring now" : wheel.wakeup === null ? "no wake-up is due" : `the next wake-up is in ${duration(Math.max(0, wheel.wakeup))}`;
  return `The timing wheel: ${number.format(wheel.tasks)} operations in ${occupied} slots on ${wheel.levels.length} levels; ${wakeup}. The table that follows has it by level.`;
}

function showLoads(wheel) {
  const words = SHADES.map((least, index) => {
    const most = SHADES[index + 1];
    const cut = wheel.most < (most ?? Infinity) && wheel.most >= least && wheel.levels.some((slots) => slots.some(([, load]) => load === wheel.most));
    return [`load-${index + 1}`, most === undefined || cut ? `${number.format(least)} or more` : most === least + 9 ? `${least} to ${most - 1}` : `${number.format(least)} to ${number.format(most - 1)}`];
  });
  byId("loads").replaceChildren(
    ...words.map(([name, text]) => element("span", {}, element("i", { className: name }), text)),
    element("span", {}, element("i", { className: "passed" }), "passed since"),
    element("span", {}, element("i", { className: "hand" }), "now"),
    element("span", {}, element("i", { className: "round next" }), "next slot"),
  );
}

function showLevels(wheel) {
  byId("levels").tBodies[0].replaceChildren(
    ...wheel.levels.map((slots, level) => {
      const slot = wheel.tick * wheel.size ** level;
      const load = slots.reduce((sum, [, load]) => sum + load, 0);
      const more = slots.some(([, load]) => load === wheel.most) ? "+" : "";
      return row([String(level)], [about(slot)], [about(slot * wheel.size)], [`${slots.length} of ${wheel.size}`], [`${number.format(load)}${more}`]);
    }),
  );
}

// Between two snapshots time goes on: so the hands do, and slots they have passed since are shown as such.
function turn() {
  if (latest === null) return;
  const { wheel } = latest;
  const elapsed = Math.min((performance.now() - arrived) / 1000, FRESH);
  const now = wheel.now + elapsed / wheel.tick;
  for (const ring of rings) {
    if (ring.hand.tagName === "line") {
      ring.hand.setAttribute("transform", `rotate(${((now / ring.width / wheel.size) % 1) * 360} ${CENTRE} ${CENTRE})`);
    }
    for (const slot of ring.slots) slot.drawn.classList.toggle("passed", wheel.now < slot.begins && slot.begins <= now);
  }
  byId("wakeup").textContent = expiring(wheel) ? "now" : wheel.wakeup === null ? "none" : duration(Math.max(0, wheel.wakeup - (wheel.wakeup > FRESH ? elapsed : 0)));
}

function animate() {
  if (!still.matches && !paused) turn();
  requestAnimationFrame(animate);
}

// Charts

const HEIGHT = 148;
const FOOT = 18;

// A nice round top for an axis.
function top(value) {
  const power = 10 ** Math.floor(Math.log10(Math.max(value, 1e-9)));
  return [1, 1.5, 2, 3, 4, 5, 6, 8, 10].map((step) => step * power).find((step) => step >= value * 0.999999);
}

function chart(id, label, highest, text, bars, marks) {
  const host = byId(id);
  const width = Math.max(200, host.clientWidth);
  const floor = HEIGHT - FOOT;
  host.replaceChildren(
    drawn(
      "svg",
      { viewBox: `0 0 ${width} ${HEIGHT}`, height: HEIGHT, role: "img", "aria-label": label },
      drawn("path", { class: "axis", d: `M0 ${floor + 0.5}H${width}M0 12.5H${width}` }),
      drawn("text", { x: 0, y: 9 }, text(highest)),
      ...bars(width, (share) => share * (floor - 12), floor),
      ...marks(width),
    ),
  );
}

const secondMarks = (seconds) => (width) => [
  drawn("text", { x: 0, y: HEIGHT - 4 }, `${seconds} s ago`),
  drawn("text", { x: width, y: HEIGHT - 4, "text-anchor": "end" }, "now"),
];

function showRates(rates) {
  const last = (outcome) => rates[outcome].at(-1);
  const sums = rates.completed.map((_, second) => OUTCOMES.reduce((sum, outcome) => sum + rates[outcome][second], 0));
  const highest = top(Math.max(5, ...sums));
  byId("rates-legend").replaceChildren(
    ...OUTCOMES.map((outcome) =>
      element("li", {}, element("i", { className: outcome }), `${outcome} `, element("b", {}, number.format(last(outcome)))),
    ),
  );
  const words = OUTCOMES.map((outcome) => `${number.format(last(outcome))} ${outcome}`).join(", ");
  chart("rates", `In the last second ${words}. In the busiest of the last minute ${number.format(Math.max(...sums))} ended.`, highest, number.format, (width, height, floor) => {
    const step = width / sums.length;
    const bars = [];
    sums.forEach((_, second) => {
      let y = floor;
      for (const outcome of OUTCOMES) {
        const tall = height(rates[outcome][second] / highest);
        y -= tall;
        if (tall) bars.push(drawn("rect", { class: `bar ${outcome}`, x: second * step + 0.5, y, width: step - 1, height: tall }));
      }
    });
    return bars;
  }, secondMarks(sums.length));
  const checks = rates.checks.at(-1);
  byId("checks").replaceChildren(
    element("b", {}, number.format(checks)), ` check${checks === 1 ? "" : "s"} of a key in the last second, `,
    element("b", {}, number.format(rates.tried.at(-1))), " tries",
  );
}

function showHistogram(id, counts, what) {
  const total = counts.reduce((sum, count) => sum + count, 0);
  const upper = (bucket) => 2 ** bucket * 1e-6;
  const quantile = (share) => {
    let sum = 0;
    return upper(counts.findIndex((count) => (sum += count) >= share * total && sum > 0));
  };
  if (!total) {
    byId(`${id}-text`).textContent = `None ${what} in the last minute.`;
    byId(id).replaceChildren();
    return;
  }
  const [half, most] = [quantile(0.5), quantile(0.99)];
  byId(`${id}-text`).replaceChildren(
    "Half within ", element("b", {}, duration(half)), ", 99 % within ", element("b", {}, duration(most)),
    `, of ${number.format(total)}`,
  );
  const first = Math.max(0, counts.findIndex((count) => count) - 1);
  // Wide enough that a single bar does not fill it.
  const last = Math.min(counts.length - 1, Math.max(first + 9, counts.findLastIndex((count) => count) + 1));
  const shownCounts = counts.slice(first, last + 1);
  const highest = top(Math.max(...shownCounts));
  chart(id, `Half within ${duration(half)}, 99 % within ${duration(most)}, of ${number.format(total)} that ${what} in the last minute.`, highest, number.format, (width, height, floor) => {
    const step = width / shownCounts.length;
    return shownCounts.map((count, index) => {
      const tall = count && Math.max(1, height(count / highest));
      return drawn("rect", { class: "bar", x: index * step + 0.5, y: floor - tall, width: step - 1, height: tall },
        drawn("title", {}, `less than ${duration(upper(first + index))}: ${number.format(count)}`));
    });
  }, (width) => {
    const step = width / shownCounts.length;
    const every = Math.ceil(56 / step);
    return shownCounts.flatMap((_, index) => {
      const x = (index + 1) * step;
      return (index + 1) % every || x > width - 20 ? [] : [drawn("text", { x, y: HEIGHT - 4, "text-anchor": "middle" }, about(Number(upper(first + index).toPrecision(2))))];
    });
  });
}

function showStalls(stalls) {
  const seen = stalls.filter((stall) => stall !== null);
  const worst = Math.max(0, ...seen);
  byId("stalls-text").replaceChildren(
    ...(seen.length
      ? ["The event loop was late by ", element("b", {}, duration(worst)), " at worst, in the ", `${seen.length} seconds it was watched of the last minute`]
      : ["The event loop is watched while somebody looks at this page."]),
  );
  const highest = top(Math.max(0.01, worst));
  chart("stalls", `Late by ${duration(worst)} at worst.`, highest, about, (width, height, floor) => {
    const step = width / stalls.length;
    return stalls.flatMap((stall, second) => {
      if (stall === null) return [];
      const tall = Math.max(1, height(stall / highest));
      return [drawn("rect", { class: "bar", x: second * step + 0.5, y: floor - tall, width: step - 1, height: tall })];
    });
  }, secondMarks(stalls.length));
}

// Tables

function row(...cells) {
  return element("tr", {}, ...cells.map((cell, index) => element("td", { className: index ? "number" : "" }, ...cell)));
}

function fill(id, rows, none) {
  const table = byId(id);
  const columns = table.tHead.rows[0].cells.length;
  const body = rows.length ? rows : [element("tr", {}, element("td", { className: "none", colSpan: columns }, none))];
  table.tBodies[0].replaceChildren(...body);
}

function note(id, text) {
  const part = byId(`${id}-part`);
  const found = part.querySelector(".note") ?? part.appendChild(element("p", { className: "note" }));
  found.textContent = text;
  found.hidden = !text;
}

const keysOf = (keys, more) => element("code", {}, keys.join(", "), more ? ` and ${number.format(more)} more` : "");

function showHottest({ hottest, sampled }) {
  const most = hottest[0]?.watchers ?? 1;
  fill("hottest", hottest.map(({ key, watchers, more }) => {
    const share = element("span", { className: "share" });
    share.style.setProperty("--share", watchers / most);
    return row([share, element("code", {}, key)], [`${number.format(watchers)}${more ? "+" : ""}`]);
  }), "Nobody watches a key.");
  note("hottest", sampled ? "Sampled: there are more keys than were looked at." : "");
}

function showOldest({ oldest, sampled }) {
  fill("oldest", oldest.map(({ kind, keys, more_keys: more, age, tries, due, text }) => row(
    [kind, " ", keysOf(keys, more), ...(text ? [element("small", {}, text)] : [])],
    [age === null ? "unknown" : duration(Math.max(0, age))],
    [tries === null ? "?" : number.format(tries)],
    [due === null ? "never" : duration(due)],
  )), "Nothing is pending.");
  note("oldest", sampled ? "Sampled: the oldest on the keys that were looked at." : "");
}

function showFailures({ failures, now }) {
  byId("failures-part").hidden = !failures.length;
  fill("failures", failures.map(({ at: failed, kind, keys, error }) => {
    const made = row([kind, " ", keysOf(keys, 0)], [element("code", {}, error)], [duration(Math.max(0, now - failed))]);
    made.cells[1].className = "";
    return made;
  }), "");
}

// Following the purgatory

const wait = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

function tell(text, kind) {
  const state = byId("state");
  // Or a reader would be told again.
  if (state.textContent !== text) state.textContent = text;
  state.className = kind;
}

// Until somebody is to see it.
function attention() {
  return new Promise((resolve) => {
    const look = () => {
      if (paused || document.hidden) return;
      document.removeEventListener("visibilitychange", look);
      byId("pause").removeEventListener("click", look);
      resolve();
    };
    document.addEventListener("visibilitychange", look);
    byId("pause").addEventListener("click", look);
    look();
  });
}

function reason(error) {
  if (error.name === "TimeoutError") return `No answer for ${PATIENCE} s: the event loop may be blocked`;
  return error instanceof TypeError ? "No connection" : error.message;
}

// Null where it cannot be had, which is said and waited out.
async function nextSnapshot() {
  try {
    const version = latest === null ? "" : `&version=${latest.version}`;
    const response = await fetch(`data?purgatory=${shown}${version}`, { signal: AbortSignal.timeout(PATIENCE * 1000) });
    if (!response.ok) throw new Error(`The server answers ${response.status} ${response.statusText}`);
    return await response.json();
  } catch (error) {
    if (paused) return null;
    tell(`${reason(error)}; trying again`, "lost");
    await wait(2000);
    return null;
  }
}

async function follow() {
  for (;;) {
    await attention();
    const snapshot = await nextSnapshot();
    if (snapshot === null || paused) continue;
    show(snapshot);
    tell("Live", "live");
  }
}

byId("pause").addEventListener("click", () => {
  turn();
  paused = !paused;
  byId("pause").setAttribute("aria-pressed", paused);
  tell(paused ? "Paused" : "Connecting", "");
});

addEventListener("resize", () => latest !== null && (showRates(latest.rates), showHistogram("waits", latest.waits, "ended"), showHistogram("lateness", latest.lateness, "expired"), showStalls(latest.stalls)));

animate();
follow().catch((error) => {
  tell(`This page has a fault: ${error.message}; reload it`, "lost");
  throw error;
});
