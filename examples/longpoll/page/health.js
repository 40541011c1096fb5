// How well each kind of request works. Only the worst is shown: "live" means that everything works.

const LEVELS = ["live", "connecting", "trouble"];
const LIVE = { level: "live", text: "live" };

export class Health {
  #states = new Map();
  #worst = { level: "connecting", text: "connecting" };
  #onChange;

  /** Calls `onChange` with {level, text} whenever the worst state changes. */
  constructor(onChange) {
    this.#onChange = onChange;
  }

  get worst() {
    return this.#worst;
  }

  /** Notes how requests of this kind work: "live", "connecting" or "trouble". */
  report(kind, level, text = level) {
    this.#states.set(kind, { level, text });
    this.#update();
  }

  /** There will be no more requests of this kind. */
  forget(kind) {
    this.#states.delete(kind);
    this.#update();
  }

  #update() {
    const rank = (state) => LEVELS.indexOf(state.level);
    const worst = [...this.#states.values()].reduce((one, other) => (rank(other) > rank(one) ? other : one), LIVE);
    const before = this.#worst;
    this.#worst = worst;
    if (worst.level !== before.level || worst.text !== before.text) this.#onChange(worst);
  }
}
