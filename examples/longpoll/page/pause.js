/** Resolves after `seconds`, or as soon as the machine is online again. Rejects at once when `signal` aborts. */
export function pause(seconds, signal) {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const end = (settle, value) => {
      clearTimeout(timer);
      removeEventListener("online", wake);
      signal.removeEventListener("abort", stop);
      settle(value);
    };
    const wake = () => end(resolve);
    const stop = () => end(reject, signal.reason);
    const timer = setTimeout(wake, seconds * 1000);
    addEventListener("online", wake);
    signal.addEventListener("abort", stop);
  });
}
