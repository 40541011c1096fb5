// The form where messages are written. What is not sent yet is kept for each topic, also when the page is reloaded.

export class Composer {
  #field;
  #topic = null;

  /** Calls `send` with each text. */
  constructor(form, field, send) {
    this.#field = field;
    field.addEventListener("input", () => this.#keep());
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const text = field.value.trim();
      // Empty at once, so that a second Enter finds nothing to send.
      field.value = "";
      this.#keep();
      if (text) send(text);
      field.focus();
    });
  }

  get #key() {
    return `chat draft ${this.#topic}`;
  }

  open(topic) {
    this.#topic = topic;
    this.#field.value = sessionStorage.getItem(this.#key) ?? "";
  }

  #keep() {
    if (this.#field.value) sessionStorage.setItem(this.#key, this.#field.value);
    else sessionStorage.removeItem(this.#key);
  }
}
