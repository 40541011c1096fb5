// Messages of this tab that are not in the feed yet. What the service did not take says so, and can be sent again.

import { element } from "./element.js";
import { Message } from "./message.js";
import { Refusal, reasonOf } from "./refusal.js";

const REQUEST_TIMEOUT = 10; // Seconds.
const KEPT = "chat outbox"; // A reload loses nothing.

export class Outbox {
  #list;
  #topic = null;
  #entries = JSON.parse(sessionStorage.getItem(KEPT) ?? "[]");

  /** Shows the messages in `list`. */
  constructor(list) {
    this.#list = list;
    for (const entry of this.#entries) entry.problem ??= "It is not known whether this has arrived.";
  }

  open(topic) {
    this.#topic = topic;
    this.#changed();
  }

  /** Sends `record` to the open topic. */
  add(record) {
    const entry = { topic: this.#topic, record };
    this.#entries.push(entry);
    this.#send(entry);
  }

  /** Forgets what has arrived: the feed shows messages with these ids. */
  arrived(ids) {
    if (!this.#entries.some((entry) => ids.has(entry.record.id))) return;
    this.#entries = this.#entries.filter((entry) => !ids.has(entry.record.id));
    this.#changed();
  }

  async #send(entry) {
    entry.problem = null;
    this.#changed();
    try {
      const response = await fetch(`topics/${entry.topic}`, {
        method: "POST",
        headers: { "Content-Type": "application/json" },
        body: JSON.stringify(entry.record),
        signal: AbortSignal.timeout(REQUEST_TIMEOUT * 1000),
      });
      if (!response.ok) throw await Refusal.of(response);
      entry.sent = true;
    } catch (error) {
      // Without an answer the service may have it all the same. Then the feed will show it.
      entry.problem = `Not sent: ${reasonOf(error)}.`;
    }
    this.#changed();
  }

  #discard(entry) {
    this.#entries = this.#entries.filter((one) => one !== entry);
    this.#changed();
  }

  #changed() {
    sessionStorage.setItem(KEPT, JSON.stringify(this.#entries.filter((entry) => !entry.sent)));
    const shown = this.#entries.filter((entry) => entry.topic === this.#topic);
    this.#list.replaceChildren(...shown.map((entry) => new Message(entry.record).draw(true, this.#state(entry))));
  }

  #state(entry) {
    if (!entry.problem) return element("p", "state", entry.sent ? "Sent" : "Sending\u2026");
    const button = (label, act) => {
      const made = element("button", "", label);
      made.type = "button";
      made.addEventListener("click", act);
      return made;
    };
    const again = button("Send again", () => this.#send(entry));
    const discard = button("Discard", () => this.#discard(entry));
    return element("div", "state failed", element("span", "", entry.problem), again, discard);
  }
}
