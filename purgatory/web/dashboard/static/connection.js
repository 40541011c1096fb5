// Requests snapshots, and says why none comes.

// Seconds to wait for an answer, which takes about one.
const ANSWER_TIMEOUT = 5;
// Seconds to wait for the answer to a probe.
const PROBE_TIMEOUT = 2;
// Milliseconds by which the answer may be later than that to the probe.
const GRACE = 500;
// Milliseconds from one request to the next. One more may be sent at the start.
const INTERVAL = 1000;

export class NoSuchPurgatory extends Error {
  constructor(names) {
    super();
    this.names = names;
  }
}

export const wait = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

let allowed = -Infinity;

// Resolves when the next request may be sent: a second after the last but one, whatever the answers were.
export async function untilAllowed() {
  const now = performance.now();
  allowed = Math.max(allowed, now - INTERVAL) + INTERVAL;
  await wait(Math.max(0, allowed - INTERVAL - now));
}

// Whether the server answers a request without cookies. Chromium has connections of their own for such requests, so that
// this one needs no place among the six that a browser opens to a server over HTTP/1.1. Source:
// https://www.chromium.org/developers/design-documents/network-stack/preconnect/
async function answersProbe() {
  try {
    const signal = AbortSignal.timeout(PROBE_TIMEOUT * 1000);
    await fetch("icon.svg", { method: "HEAD", credentials: "omit", cache: "no-store", redirect: "manual", signal });
    return true;
  } catch {
    return false;
  }
}

let current = null;

// Drop the request that is under way.
export const dropRequest = () => current?.abort(null);

// The snapshot at the address, or null when the request was dropped. Calls `showDelay` with the reason while it waits.
export async function requestSnapshot(address, showDelay) {
  const request = current = new AbortController();
  const check = async () => {
    const answers = await answersProbe();
    // When a loop is free again, it answers both.
    await wait(GRACE);
    if (current !== request) return;
    // A request that waits for a connection keeps its place in the queue.
    if (answers) showDelay("This browser has no free connection to the server. Other tabs hold all six that HTTP/1.1 allows: close some, or serve HTTP/2.");
    else request.abort(new Error("The event loop may be blocked. Look for code that blocks it, or at the network."));
  };
  const checks = setInterval(check, ANSWER_TIMEOUT * 1000);
  try {
    // Of equal requests by two tabs, the cache would let the second wait for the answer to the first.
    const response = await fetch(address, { cache: "no-store", signal: request.signal });
    if (response.status === 404) throw new NoSuchPurgatory((await response.json()).purgatories);
    if (!response.ok) throw new Error(`The server answers ${response.status} ${response.statusText}.${[401, 403].includes(response.status) ? " Log in, and reload this page." : ""}`);
    return await response.json();
  } catch (error) {
    if (error === null) return null;
    throw error instanceof TypeError ? new Error("No connection. Look whether the process runs.") : error;
  } finally {
    clearInterval(checks);
    current = null;
  }
}
