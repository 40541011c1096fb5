// Follows one purgatory: requests its snapshots, one after the other, and shows them.

import { showLateness, showRates, showStalls, showWaits } from "./charts.js";
import { dropRequest, NoSuchPurgatory, requestSnapshot, untilAllowed, wait } from "./connection.js";
import { byId, element, fill, number, update, write } from "./elements.js";
import { showFailures } from "./failures.js";
import { showFigures, showPart } from "./figures.js";
import { isShown } from "./processes.js";
import { showKeys, showOperations } from "./tables.js";
import { isWheelOpen, showWheel, turnHands } from "./wheel.js";

// Milliseconds before the next request after one that failed.
const RETRY_DELAY = 2000;
// Milliseconds after the last letter before a search begins.
const TYPING = 300;
// Milliseconds without an answer of the shown process, after which the page says so.
const STALE = 5000;

const reducedMotion = matchMedia("(prefers-reduced-motion: reduce)");
// What the page asks for. All of it is in the address, so that it can be sent to a colleague.
const wanted = new URLSearchParams(location.search);
const form = byId("search");

let latest = null;
let previous = null;
let shownAt = 0;
let version = null;
let paused = false;

function show(snapshot) {
  const { statistics, tabs, name, process } = snapshot;
  previous = latest?.process.instance === process.instance ? latest : snapshot;
  latest = snapshot;
  shownAt = performance.now();
  document.body.classList.remove("waiting");
  write("name", name);
  write("process", `on ${process.host}, process ${process.pid}`);
  document.title = `${number.format(statistics.pending)} pending · ${name}`;
  showTabs(tabs, name);
  update("figures-part", () => showFigures(snapshot));
  update("failures-part", () => showFailures(snapshot));
  showCharts();
  showKeys(snapshot.pending_sample);
  update("operations-part", () => showOperations(snapshot));
  update("messages-part", () => showPart("messages", snapshot.messages));
  update("relay-part", () => showPart("relay", snapshot.relay));
  drawWheel();
}

function showTabs(tabs, shown) {
  // A single purgatory needs no tab, unless the address has the name of another one.
  const needed = tabs.length > 1 || shown === null;
  byId("tabs").hidden = !needed;
  fill(byId("tabs"), !needed ? [] : tabs.map(({ name, pending }) => {
    const count = pending === undefined ? [] : [
      " ", element("span", { className: "count" }, number.format(pending)), " ", element("span", { className: "unseen" }, "pending"),
    ];
    const link = element("a", { href: `?purgatory=${encodeURIComponent(name)}`, data: { key: name } }, name, ...count);
    if (name === shown) link.setAttribute("aria-current", "page");
    return link;
  }));
}

function showCharts() {
  update("rates-part", () => showRates(latest.rates));
  update("waits-part", () => showWaits(latest.waits));
  update("lateness-part", () => showLateness(latest.lateness));
  update("stalls-part", () => showStalls(latest.stalls));
}

function drawWheel() {
  if (latest === null || !isWheelOpen()) return;
  const wakeups = latest.statistics.wakeups - previous.statistics.wakeups;
  update("wheel-part", () => showWheel(latest.wheel, Math.max(0, Math.round(wakeups / (latest.now - previous.now || 1)))));
}

function showState(text, kind) {
  write("state", text);
  byId("state").className = kind;
}

// Resolves when the page is visible and not paused.
function untilWatched() {
  return new Promise((resolve) => {
    const check = () => {
      if (paused || document.hidden) return;
      document.removeEventListener("visibilitychange", check);
      byId("pause").removeEventListener("click", check);
      resolve();
    };
    document.addEventListener("visibilitychange", check);
    byId("pause").addEventListener("click", check);
    check();
  });
}

// The next snapshot; null when there is none, once the state has been shown and the delay is over.
async function nextSnapshot() {
  const parameters = new URLSearchParams(wanted);
  if (version !== null) parameters.set("version", version);
  try {
    const snapshot = await requestSnapshot(`data?${parameters}`, (reason) => paused || showState(reason, "lost"));
    version = snapshot?.version ?? null;
    return snapshot;
  } catch (error) {
    if (error instanceof NoSuchPurgatory) throw error;
    if (paused) return null;
    showState(`${error.message}; trying again`, "lost");
    await wait(RETRY_DELAY);
    return null;
  }
}

async function follow() {
  for (;;) {
    await untilWatched();
    await untilAllowed();
    const snapshot = await nextSnapshot();
    if (snapshot === null || paused) continue;
    if (isShown(snapshot)) show(snapshot);
    if (performance.now() - shownAt < STALE) showState("Live", "live");
    else showState(`Process ${latest.process.pid} has not answered for a while; others do`, "lost");
  }
}

function end(error) {
  if (error instanceof NoSuchPurgatory) {
    showState(`There is no purgatory ${wanted.get("purgatory")} here`, "lost");
    showTabs(error.names.map((name) => ({ name })), null);
    return;
  }
  showState(`This page has a fault: ${error.message}; reload it`, "lost");
  throw error;
}

function animate() {
  if (!reducedMotion.matches && !paused && isWheelOpen()) turnHands();
  requestAnimationFrame(animate);
}

byId("pause").addEventListener("click", () => {
  turnHands();
  paused = !paused;
  byId("pause").setAttribute("aria-pressed", paused);
  showState(paused ? "Paused" : "Connecting", "");
});

// Search for what the form asks for, from the next request on.
function search() {
  for (const [name, value] of new FormData(form)) {
    if (value && value !== "pending") wanted.set(name, value);
    else wanted.delete(name);
  }
  const query = wanted.toString();
  history.replaceState(null, "", location.pathname + (query && `?${query}`));
  version = null;
  dropRequest();
}

let typing = null;

form.addEventListener("submit", (event) => event.preventDefault());
form.addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(search, TYPING);
});
form.addEventListener("reset", () => setTimeout(search));
for (const [name, value] of wanted) if (form.elements[name]) form.elements[name].value = value;

byId("hottest").addEventListener("click", ({ target }) => {
  const key = target.closest("button")?.dataset.search;
  if (key === undefined) return;
  form.reset();
  form.elements.key.value = key;
  search();
  byId("operations-part").scrollIntoView({ behavior: reducedMotion.matches ? "auto" : "smooth", block: "nearest" });
  form.elements.key.focus({ preventScroll: true });
});

byId("wheel-details").addEventListener("toggle", drawWheel);
addEventListener("resize", () => latest !== null && showCharts());

animate();
follow().catch(end);
