// A tab's side of the hub.

import { Hub } from "./hub.js";

/** Follows a topic by the poll that all tabs of this browser share. Calls the methods `onNews(page, online, topics)`
 *  and `onHealth(level, text)` of `listener`. */
export class Subscription {
  /** Whether no other tab of this browser has the same name. */
  alone = true;
  #listener;
  #port = null;
  #topic = null;
  #place = null;
  #turn = 0; // It tells the pages of this topic from those of topics that were open before.
  #name;

  constructor(name, listener) {
    this.#name = name;
    this.#listener = listener;
    try {
      const worker = new SharedWorker("worker.js", { type: "module" });
      worker.onerror = () => this.#pollAlone();
      this.#use(worker.port);
    } catch {
      // Browsers for phones often have no shared workers.
      this.#pollAlone();
    }
  }

  /** Follows `topic` from its oldest record on. */
  open(topic) {
    this.#topic = topic;
    this.#place = null;
    this.#turn += 1;
    this.#follow();
  }

  rename(name) {
    this.#name = name;
    this.#say({ kind: "rename", name });
  }

  leave() {
    this.#say({ kind: "leave" });
  }

  #pollAlone() {
    const { port1, port2 } = new MessageChannel();
    new Hub().join(port2);
    this.#use(port1);
    if (this.#topic !== null) this.#follow();
  }

  #use(port) {
    this.#port = port;
    port.onmessage = ({ data }) => {
      this.#hear(data);
      this.#say({ kind: "here" });
    };
  }

  #hear(message) {
    if (message.kind === "who") this.#follow();
    else if (message.kind === "company") this.alone = message.alone;
    else if (message.kind === "health") this.#listener.onHealth(message.level, message.text);
    else {
      const page = message.turn === this.#turn ? this.#rest(message.page) : null;
      if (page) this.#place = { log: page.log, offset: page.next };
      this.#listener.onNews(page, message.online, message.topics);
    }
  }

  /** The part of `page` that this tab has not got. */
  #rest(page) {
    if (page === null) return null;
    if (page.log !== this.#place?.log || page.offset >= this.#place.offset) return page;
    const known = this.#place.offset - page.offset;
    if (known > page.records.length) return null;
    return { ...page, offset: this.#place.offset, records: page.records.slice(known) };
  }

  #follow() {
    this.#say({ kind: "follow", topic: this.#topic, place: this.#place, turn: this.#turn, name: this.#name });
  }

  #say(message) {
    this.#port.postMessage(message);
  }
}
