// Follows one purgatory: requests its snapshots, one after the other, and shows them.

import { showLateness, showRates, showStalls, showWaits } from "./charts.js";
import { dropRequest, NoSuchPurgatory, requestSnapshot, untilAllowed, wait } from "./connection.js";
import { byId, inSeconds, number, timeOfDay, update, write } from "./elements.js";
import { showFailures } from "./failures.js";
import { showFigures, showPart, worstStall } from "./figures.js";
import { showHealth, showTabs } from "./health.js";
import { isSeveral, isShown } from "./processes.js";
import { showKeys, showOperations } from "./tables.js";
import { isWheelOpen, showWheel, turnHands } from "./wheel.js";

// Milliseconds before the next request after one that failed.
const RETRY_DELAY = 2000;
// Milliseconds after the last letter before a search begins.
const TYPING = 300;
// Milliseconds without an answer of the shown process, after which the page says so. Where several processes answer, each
// answers now and then.
const STALE = 5000;
const STALE_OF_SEVERAL = 20_000;
// Milliseconds for which the page says that the server is back.
const BACK = 10_000;
// Milliseconds between two requests of a page in a background tab, whose title and icon go on.
const HIDDEN = 30_000;

const reducedMotion = matchMedia("(prefers-reduced-motion: reduce)");
// What the page asks for. All of it is in the address, so that it can be sent to a colleague.
const wanted = new URLSearchParams(location.search);
const form = byId("search");

let latest = null;
let previous = null;
let shownAt = 0;
let version = null;
let paused = false;
// Why no data come, in words. It is shown when none have come for a while.
let cause = "";
// The moment of the last restart, in seconds since 1970, and when the page stops to say that the server is back.
let restartedAt = null;
let backUntil = 0;
// When the viewer began to look again, after a pause or in another tab.
let watchedAt = 0;

function show(snapshot) {
  const { name, process, stalls } = snapshot;
  const now = performance.now();
  if (!isSeveral() && latest !== null && latest.process.instance !== process.instance) showRestart(latest, snapshot);
  previous = latest?.process.instance === process.instance ? latest : snapshot;
  if (document.body.classList.contains("stale")) {
    showBar(`Back after ${inSeconds(now - shownAt)}.`, "back");
    backUntil = now + BACK;
  }
  latest = snapshot;
  shownAt = now;
  cause = "";
  document.body.classList.remove("waiting", "stale");
  write("name", name);
  write("host", `on ${process.host},`);
  write("process", `process ${process.pid}`);
  write("up", snapshot.since === null ? "" : `up ${inSeconds((snapshot.now - snapshot.since) * 1000)}`);
  write("zone", `Times are in ${Intl.DateTimeFormat().resolvedOptions().timeZone}.`);
  showHealth(snapshot, worstStall(stalls));
  update("figures-part", () => showFigures(snapshot));
  update("failures-part", () => showFailures(snapshot));
  showCharts();
  showKeys(snapshot.pending_sample);
  update("operations-part", () => showOperations(snapshot));
  update("messages-part", () => showPart("messages", snapshot.messages));
  update("relay-part", () => showPart("relay", snapshot.relay));
  drawWheel();
}

function showRestart(before, { process, time }) {
  restartedAt = time;
  const { refused, failed } = before.statistics;
  byId("restart").querySelector("span").textContent = `Restarted at ${timeOfDay(time, time)} (process ${before.process.pid} to ${process.pid}). `
    + `Before: ${number.format(refused)} refused, ${number.format(failed)} failed.`;
  byId("restart").hidden = false;
}

function showCharts() {
  const { time, rates, stalls } = latest;
  const end = document.body.classList.contains("stale") ? timeOfDay(time, time) : "now";
  const seconds = rates.checks.length;
  const mark = restartedAt !== null && time - restartedAt < seconds ? seconds - (time - restartedAt) : null;
  update("rates-part", () => showRates(rates, { end, mark }));
  update("waits-part", () => showWaits(latest.waits));
  update("lateness-part", () => showLateness(latest.lateness));
  update("stalls-part", () => showStalls(stalls, { end, mark }));
}

function drawWheel() {
  if (latest === null || !isWheelOpen()) return;
  const wakeups = latest.statistics.wakeups - previous.statistics.wakeups;
  update("wheel-part", () => showWheel(latest.wheel, Math.max(0, Math.round(wakeups / (latest.now - previous.now || 1)))));
  animate();
}

function showState(text, kind) {
  write("state", text);
  byId("state").className = kind;
}

function showBar(text, kind) {
  write("bar", text);
  byId("bar").className = `bar ${kind}`;
  byId("bar").hidden = !text;
}

// Say how old the data are, once a second.
function showFreshness() {
  const now = performance.now();
  if (paused || document.hidden) return;
  if (latest === null) {
    if (cause) showBar(cause, "lost");
    return;
  }
  const silent = now - Math.max(shownAt, watchedAt);
  if (silent < (isSeveral() ? STALE_OF_SEVERAL : STALE) && !cause) {
    showState("Live", "live");
    if (now > backUntil) showBar("", "");
    return;
  }
  showState(`No answer since ${timeOfDay(latest.time, latest.time)} (${inSeconds(silent)})`, "lost");
  if (silent < STALE) return;
  const first = !document.body.classList.contains("stale");
  document.body.classList.add("stale");
  const others = isSeveral() ? " Others do: choose one of them below, or look whether it runs." : "";
  showBar(cause || `Process ${latest.process.pid} has not answered.${others}`, "lost");
  if (first) showCharts();
}

// Resolves when the page is not paused, and is visible or has been hidden for a while.
function untilWatched() {
  return new Promise((resolve) => {
    const hiddenUntil = performance.now() + HIDDEN - 1;
    const check = () => {
      if (paused || (document.hidden && performance.now() < hiddenUntil)) return;
      clearTimeout(later);
      document.removeEventListener("visibilitychange", check);
      byId("pause").removeEventListener("click", check);
      resolve();
    };
    document.addEventListener("visibilitychange", check);
    byId("pause").addEventListener("click", check);
    const later = setTimeout(check, HIDDEN);
    check();
  });
}

// The next snapshot; null when there is none, once the state has been shown and the delay is over.
async function nextSnapshot() {
  const parameters = new URLSearchParams(wanted);
  if (version !== null) parameters.set("version", version);
  try {
    const snapshot = await requestSnapshot(`data?${parameters}`, (reason) => { cause = reason; });
    version = snapshot?.version ?? null;
    return snapshot;
  } catch (error) {
    if (error instanceof NoSuchPurgatory) throw error;
    if (paused) return null;
    cause = error.message;
    showFreshness();
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
    cause = "";
    if (isShown(snapshot)) show(snapshot);
    if (isSeveral()) [restartedAt, byId("restart").hidden] = [null, true];
    showFreshness();
  }
}

function end(error) {
  clearInterval(freshness);
  if (error instanceof NoSuchPurgatory) {
    showState("Nothing to show", "lost");
    showBar(`There is no purgatory ${wanted.get("purgatory")} here. Choose one of these.`, "lost");
    document.body.classList.remove("waiting");
    document.body.classList.add("nothing");
    showTabs(error.names.map((name) => ({ name })), null);
    return;
  }
  showState("Stopped", "lost");
  showBar(`This page has a fault: ${error.message}. Reload it.`, "lost");
  throw error;
}

// Turn the hands of the wheel while it can be seen. Nothing is drawn otherwise.
let drawing = false;
function animate() {
  if (drawing || reducedMotion.matches) return;
  drawing = true;
  const turn = () => {
    drawing = !paused && isWheelOpen();
    if (!drawing) return;
    turnHands();
    requestAnimationFrame(turn);
  };
  turn();
}

byId("pause").addEventListener("click", () => {
  turnHands();
  paused = !paused;
  watchedAt = performance.now();
  if (!paused) drawWheel();
  byId("pause").setAttribute("aria-pressed", paused);
  showState(paused && latest ? `Paused at ${timeOfDay(latest.time, latest.time)}` : paused ? "Paused" : "Connecting", "");
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

document.addEventListener("visibilitychange", () => { watchedAt = performance.now(); });
byId("internals").addEventListener("toggle", drawWheel);
byId("restart").querySelector("button").addEventListener("click", () => { byId("restart").hidden = true; });

const freshness = setInterval(showFreshness, 1000);
follow().catch(end);
