// The processes that answer at this address, one of which the page shows.

import { byId, element, fill, inSeconds, number } from "./elements.js";
import { row } from "./tables.js";

// Milliseconds after its last answer in which a process is listed.
const LISTED = 60_000;

// By instance: host, number and pending operations of each process, and when it answered last.
const processes = new Map();
let last = null;
let several = false;
let shown = null;

export const isSeveral = () => several;

// Whether the page shows this snapshot. When a process answers again after another one, there are several of them, and
// the page shows one. A process that replaces another one is shown at once.
export function isShown({ process, statistics }) {
  const { instance } = process;
  const now = performance.now();
  if (instance !== last && processes.has(instance)) several = true;
  processes.set(instance, { ...process, pending: statistics.pending, at: now });
  for (const [each, { at }] of processes) if (now - at > LISTED) processes.delete(each);
  if (processes.size === 1) several = false;
  if (!several || !processes.has(shown)) shown = instance;
  last = instance;
  showProcesses();
  return instance === shown;
}

function showProcesses() {
  byId("processes-part").hidden = !several;
  const now = performance.now();
  const list = several ? [...processes.values()].sort((one, other) => one.instance < other.instance ? -1 : 1) : [];
  fill(byId("processes").tBodies[0], list.map(({ instance, host, pid, pending, at }) => {
    const button = element("button", { type: "button", data: { instance } }, `${host}, process ${pid}`);
    button.setAttribute("aria-pressed", instance === shown);
    return row(instance, ["Process", button], ["Pending", number.format(pending)], ["Answered", `${inSeconds(now - at)} ago`]);
  }));
}

byId("processes").addEventListener("click", ({ target }) => {
  const chosen = target.closest("button")?.dataset.instance;
  if (!chosen) return;
  shown = chosen;
  showProcesses();
});
