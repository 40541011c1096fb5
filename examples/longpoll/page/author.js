// Who writes in this tab: a name, and an id by which this browser knows its own messages again.

const BROWSER = "chat browser";
const NAME = "chat name";

function randomId() {
  return Array.from(crypto.getRandomValues(new Uint8Array(8)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

export class Author {
  #browser = localStorage.getItem(BROWSER) ?? randomId();
  #name = sessionStorage.getItem(NAME) ?? `guest-${Math.floor(Math.random() * 9000 + 1000)}`;

  constructor() {
    localStorage.setItem(BROWSER, this.#browser);
  }

  get name() {
    return this.#name;
  }

  set name(name) {
    this.#name = name;
    sessionStorage.setItem(NAME, name);
  }

  /** A record of what this person says now. By its id, a record that is sent twice is shown once. */
  record(text) {
    return { from: this.#name, text, at: new Date().toISOString(), id: `${this.#browser}-${randomId()}` };
  }

  /** Whether this person wrote `message` in this browser. */
  wrote(message) {
    return message.record?.from === this.#name && (message.id?.startsWith(`${this.#browser}-`) ?? false);
  }
}
