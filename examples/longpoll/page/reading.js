// How far the person has read. While the end is in view, the feed follows it. Otherwise a line marks where the new
// messages begin, and a button and the title count them.

import { element } from "./element.js";

const NEAR = 40; // Pixels. The end is in view when no more than these are below it.

export class Reading {
  #view;
  #button;
  #following = true;
  #unread = 0;
  #marker = null;
  #topic = null;
  #last = null; // The place of the last message.
  #read = null; // The place up to which this person has read.
  #resuming = false; // Whether that was when the topic was open before.

  /** `view` is what scrolls, and `button` goes to its end. */
  constructor(view, button) {
    this.#view = view;
    this.#button = button;
    button.addEventListener("click", () => this.goToEnd());
    view.addEventListener("scroll", () => this.#look());
    document.addEventListener("visibilitychange", () => this.#look());
    // A window that shrinks, or a form that grows, moves the end out of view without any scrolling.
    const resized = new ResizeObserver(() => this.#keepUp());
    for (const one of [view, ...view.children]) resized.observe(one);
  }

  get #key() {
    return `chat read ${this.#topic}`;
  }

  get #seen() {
    return this.#following && !document.hidden;
  }

  open(topic) {
    this.#topic = topic;
    this.#last = null;
    this.#read = JSON.parse(localStorage.getItem(this.#key));
    this.#resuming = true;
    this.#unread = 0;
    this.#marker = null; // The feed has removed it.
    this.goToEnd();
  }

  /** Takes note of what the feed has added of `page`. */
  note(page, added) {
    this.#last = { log: page.log, offset: page.next - 1 };
    // Who opens a topic for the first time has missed nothing.
    if (this.#read?.log !== page.log) this.#read = this.#last;
    const fresh = added.filter((one) => !one.own && one.offset > this.#read.offset);
    if (fresh.length && !this.#unread && (this.#resuming || !this.#seen)) this.#mark(fresh[0]);
    if (this.#last.offset >= this.#read.offset) this.#resuming = false;
    if (!this.#seen) this.#unread += fresh.length;
    this.#keepUp();
    this.#show();
  }

  goToEnd() {
    this.#following = true;
    this.#keepUp();
    this.#show();
  }

  #mark(one) {
    this.#marker?.remove();
    this.#marker = element("p", "marker", "New messages");
    one.shown.before(this.#marker);
  }

  #look() {
    const { scrollHeight, scrollTop, clientHeight } = this.#view;
    this.#following = scrollHeight - scrollTop - clientHeight <= NEAR;
    this.#show();
  }

  #keepUp() {
    if (this.#following) this.#view.scrollTop = this.#view.scrollHeight;
  }

  #keep() {
    if (this.#resuming) return; // The rest of what was read before is still to come.
    this.#read = this.#last;
    localStorage.setItem(this.#key, JSON.stringify(this.#read));
  }

  #show() {
    if (this.#seen) {
      this.#unread = 0;
      if (this.#last) this.#keep();
    }
    document.title = `${this.#unread ? `(${this.#unread}) ` : ""}${this.#topic} \u2013 Topics`;
    this.#button.hidden = this.#following;
    this.#button.textContent = this.#unread ? `${this.#unread} new \u2193` : "To the end \u2193";
  }
}
