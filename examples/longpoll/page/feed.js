// The messages of the open topic, in order, with a line for each new day.

import { element } from "./element.js";
import { Message } from "./message.js";

const MAX_MESSAGES = 500; // On the page; older ones are removed.

export class Feed {
  #list;
  #author;
  #next = null;
  #day = null;
  #ids = new Set();

  constructor(list, author) {
    this.#list = list;
    this.#author = author;
  }

  clear() {
    this.#list.replaceChildren();
    this.#next = null;
    this.#day = null;
    this.#ids.clear();
  }

  /** Shows the messages of `page`, and returns them with their elements and offsets. If they do not continue what is
   *  shown, because records were dropped or the service began anew, they replace it. */
  add(page) {
    if (this.#next !== null && (page.log !== this.#next.log || page.offset !== this.#next.offset)) this.clear();
    this.#next = { log: page.log, offset: page.next };
    const added = page.records.map((record, index) => this.#show(new Message(record), page.offset + index));
    while (this.#list.childElementCount > MAX_MESSAGES) {
      this.#ids.delete(this.#list.firstElementChild.dataset.id);
      this.#list.firstElementChild.remove();
    }
    return added.filter((one) => one !== null);
  }

  #show(message, offset) {
    if (this.#ids.has(message.id)) return null; // It was sent twice.
    if (message.day && message.day !== this.#day) {
      this.#day = message.day;
      this.#list.append(element("h3", "day", message.day));
    }
    const own = this.#author.wrote(message);
    const shown = message.draw(own);
    this.#list.append(shown);
    if (message.id !== null) {
      this.#ids.add(message.id);
      shown.dataset.id = message.id;
    }
    return { message, own, offset, shown };
  }
}
