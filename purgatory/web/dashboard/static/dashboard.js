// Follows one purgatory: requests its snapshots, one after the other, and shows them.

import { showHistogram, showRates, showStalls } from "./charts.js";
import { byId, element, number } from "./elements.js";
import { showFailures, showHottest, showOldest, showPart } from "./tables.js";
import { showWheel, turnHands } from "./wheel.js";

// Seconds to wait for a response, which takes about one. None comes from a blocked event loop or a broken connection.
const RESPONSE_TIMEOUT = 5;
// Milliseconds before the next request after one that failed.
const RETRY_DELAY = 2000;

const reducedMotion = matchMedia("(prefers-reduced-motion: reduce)");
// The number of the purgatory on this page.
const shown = Number(new URLSearchParams(location.search).get("purgatory") ?? 0);

let latest = null;
let paused = false;

function show(snapshot) {
  const before = latest ?? snapshot;
  const wakeupsPerSecond = Math.round((snapshot.statistics.wakeups - before.statistics.wakeups) / (snapshot.now - before.now || 1));
  latest = snapshot;
  const { statistics, tabs, pending_sample: pendingSample } = snapshot;
  const name = tabs[shown].name;
  byId("name").textContent = name;
  document.title = `${number.format(statistics.pending)} pending · ${name}`;
  for (const [field, value] of Object.entries(statistics)) byId(field).textContent = value === null ? "none" : number.format(value);
  showTabs(tabs);
  showWheel(snapshot.wheel, wakeupsPerSecond);
  showCharts();
  showHottest(pendingSample);
  showOldest(pendingSample);
  showFailures(snapshot);
  showPart("messages", snapshot.messages);
  showPart("relay", snapshot.relay);
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

function showCharts() {
  showRates(latest.rates);
  showHistogram("waits", latest.waits, "ended");
  showHistogram("lateness", latest.lateness, "expired");
  showStalls(latest.stalls);
}

function showState(text, kind) {
  const state = byId("state");
  // A screen reader reads every change aloud, so an equal text is not set again.
  if (state.textContent !== text) state.textContent = text;
  state.className = kind;
}

const wait = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

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

function reason(error) {
  if (error.name === "TimeoutError") return `No answer for ${RESPONSE_TIMEOUT} s: the event loop may be blocked`;
  return error instanceof TypeError ? "No connection" : error.message;
}

// The next snapshot; after a failed request null, once the state has been shown and the delay is over.
async function nextSnapshot() {
  try {
    const version = latest === null ? "" : `&version=${latest.version}`;
    const response = await fetch(`data?purgatory=${shown}${version}`, { signal: AbortSignal.timeout(RESPONSE_TIMEOUT * 1000) });
    if (!response.ok) throw new Error(`The server answers ${response.status} ${response.statusText}`);
    return await response.json();
  } catch (error) {
    if (paused) return null;
    showState(`${reason(error)}; trying again`, "lost");
    await wait(RETRY_DELAY);
    return null;
  }
}

async function follow() {
  for (;;) {
    await untilWatched();
    const snapshot = await nextSnapshot();
    if (snapshot === null || paused) continue;
    show(snapshot);
    showState("Live", "live");
  }
}

function animate() {
  if (!reducedMotion.matches && !paused) turnHands();
  requestAnimationFrame(animate);
}

byId("pause").addEventListener("click", () => {
  turnHands();
  paused = !paused;
  byId("pause").setAttribute("aria-pressed", paused);
  showState(paused ? "Paused" : "Connecting", "");
});

addEventListener("resize", () => latest !== null && showCharts());

animate();
follow().catch((error) => {
  showState(`This page has a fault: ${error.message}; reload it`, "lost");
  throw error;
});
