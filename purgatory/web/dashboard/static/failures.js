// The latest failures, the equal ones together, each with a button that copies it.

import { byId, code, element, fill, number, timeOfDay } from "./elements.js";
import { keyList, row } from "./tables.js";

// Milliseconds for which a button says that it has copied.
const COPIED = 2000;

export function showFailures({ failures, now, time }) {
  byId("failures-part").hidden = !failures.length;
  const at = (moment) => timeOfDay(time - (now - moment), time);
  fill(byId("failures").tBodies[0], failures.map(({ kind, keys, error, count, first, last }) => {
    const when = count === 1 ? at(last) : `${at(last)}, first ${at(first)}`;
    const where = keys.length ? `${count > 1 ? ", last" : ""} on ${keys.join(", ")}` : "";
    const text = `${kind}${where}: ${error} (${count === 1 ? "once" : `${number.format(count)} times`}, last at ${when})`;
    return row(
      `${kind} ${error}`,
      ["Operation", element("bdi", {}, kind), " ", count > 1 && keys.length ? "last on " : "", keyList(keys, 0)],
      ["Error", code(error)],
      ["Times", number.format(count)],
      ["Last at", when],
      ["", element("button", { type: "button", className: "copy", data: { text } }, "Copy")],
    );
  }));
}

async function copy(text) {
  if (navigator.clipboard) {
    await navigator.clipboard.writeText(text);
    return;
  }
  // Browsers have no clipboard object on a page that came over plain HTTP.
  const field = document.body.appendChild(element("textarea", { value: text }));
  field.select();
  document.execCommand("copy");
  field.remove();
}

byId("failures").addEventListener("click", async ({ target }) => {
  const button = target.closest("button.copy");
  if (!button) return;
  await copy(button.dataset.text);
  button.focus();
  byId("copied").textContent = "Copied";
  setTimeout(() => { byId("copied").textContent = ""; }, COPIED);
});
