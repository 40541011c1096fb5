// A loop of requests, each of which the service answers when there is news, or when its wait is over.

import { pause } from "./pause.js";
import { Refusal, reasonOf } from "./refusal.js";

const WAIT = 25; // Seconds. Proxies often give up on a response after 30 or 60.
const REQUEST_TIMEOUT = WAIT + 10; // Seconds. A connection can break without any sign of it.
const LONGEST_PAUSE = 30; // Seconds.

export class LongPoll {
  #url;
  #take;
  #health;
  #running = null;

  /** Each request is for `url()`, which may change with what `take` gets of the response. */
  constructor(url, take, health) {
    this.#url = url;
    this.#take = take;
    this.#health = health;
    health.report("poll", "connecting");
  }

  /** Begins, or begins anew with what `url()` is by now. */
  restart() {
    this.stop();
    this.#running = new AbortController();
    this.#run(this.#running.signal);
  }

  stop() {
    this.#running?.abort();
  }

  async #run(signal) {
    let failures = 0;
    while (!signal.aborted) {
      let news;
      try {
        news = await this.#request(signal);
      } catch (error) {
        if (signal.aborted) return;
        failures += 1;
        this.#health.report("poll", "trouble", `${reasonOf(error)}; trying again`);
        await pause(secondsBefore(failures, error), signal).catch(() => {});
        continue;
      }
      if (signal.aborted) return;
      failures = 0;
      this.#health.report("poll", "live");
      this.#take(news);
    }
  }

  async #request(signal) {
    const signals = AbortSignal.any([signal, AbortSignal.timeout(REQUEST_TIMEOUT * 1000)]);
    const response = await fetch(`${this.#url()}&wait=${WAIT}`, { signal: signals, cache: "no-store" });
    if (!response.ok) throw await Refusal.of(response);
    return response.json();
  }
}

/** Exponential backoff with jitter, so that clients do not all come at once, or what the service asks for. */
function secondsBefore(failures, error) {
  if (error instanceof Refusal && error.retryAfter !== null) return error.retryAfter + Math.random();
  return Math.min(2 ** failures, LONGEST_PAUSE) * (0.5 + Math.random() / 2);
}
