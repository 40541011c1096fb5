// Keeps the people of this browser online: each name gets a heartbeat now and then.

import { pause } from "./pause.js";
import { Refusal, reasonOf } from "./refusal.js";

const REQUEST_TIMEOUT = 10; // Seconds.

export class Heartbeats {
  #lives = new Map();
  #health;

  constructor(health) {
    this.#health = health;
  }

  /** From now on these names are online, and others of this browser are not. */
  keep(names) {
    for (const [name, life] of this.#lives) {
      if (names.has(name)) continue;
      this.#lives.delete(name);
      life.abort();
      this.#health.forget(kind(name));
      request(name, "DELETE").catch(() => {}); // Without it, the session ends by itself.
    }
    for (const name of names) {
      if (this.#lives.has(name)) continue;
      const life = new AbortController();
      this.#lives.set(name, life);
      this.#beat(name, life.signal);
    }
  }

  async #beat(name, signal) {
    let seconds = 1;
    while (!signal.aborted) {
      try {
        const { timeout } = await (await request(name, "POST")).json();
        seconds = timeout / 3;
        if (!signal.aborted) this.#health.report(kind(name), "live");
      } catch (error) {
        if (signal.aborted) return;
        this.#health.report(kind(name), "trouble", `${name} is not shown as online: ${reasonOf(error)}`);
      }
      await pause(seconds, signal).catch(() => {});
    }
  }
}

const kind = (name) => `presence of ${name}`;

async function request(name, method) {
  const signal = AbortSignal.timeout(REQUEST_TIMEOUT * 1000);
  const response = await fetch(`presence/${encodeURIComponent(name)}`, { method, signal });
  if (!response.ok) throw await Refusal.of(response);
  return response;
}
