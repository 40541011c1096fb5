// The page follows the feed of a topic and the list of people online, each by a long poll: it sends a request,
// waits for the response, and sends the next request from where the response ended.

const FEED_WAIT = 25; // Seconds. Proxies often give up on a response after 30 or 60.
const PRESENCE_WAIT = 5; // Seconds. A heartbeat follows each response, so this is the longest time between two.
const REQUEST_TIMEOUT = FEED_WAIT + 10; // Seconds. A connection can break without any sign of it.
const MAX_RECORDS = 500; // On the page; older ones are removed.
const LOBBY = "lobby";

const at = (id) => document.getElementById(id);
const [feed, online, status, problem] = ["feed", "online", "status", "problem"].map(at);
const [nameField, topicField] = ["name", "topic"].map(at);

nameField.value = sessionStorage.getItem("name") ?? `guest-${Math.floor(Math.random() * 9000 + 1000)}`;
let topic; // The open topic, which is not always the one in the field.
let feedPoll = new AbortController();
const presencePoll = new AbortController();

function showStatus(text, kind) {
  // A screen reader announces every assignment, also of the same text.
  if (status.textContent !== text) status.textContent = text;
  status.className = kind;
}

/** Resolves after `seconds`, or rejects at once when `signal` aborts. */
function pause(seconds, signal) {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const timer = setTimeout(resolve, seconds * 1000);
    signal.addEventListener("abort", () => { clearTimeout(timer); reject(signal.reason); }, { once: true });
  });
}

/** A signal that aborts when `signal` does, or after REQUEST_TIMEOUT. */
const withTimeout = (signal) => AbortSignal.any([signal, AbortSignal.timeout(REQUEST_TIMEOUT * 1000)]);

/** The reason in an error response. Its `detail` is a sentence, or a list of what is wrong with the request. */
async function reasonOf(response) {
  const { detail } = await response.json().catch(() => ({}));
  const reason = Array.isArray(detail) ? detail.map((one) => one.msg).join("; ") : detail;
  return reason ? `${reason} (status ${response.status})` : `status ${response.status}`;
}

/** Requests `url`, calls `handle` with the response, and goes on with the URL that `handle` returns.
 *  It retries after failures. It ends when `signal` aborts, or when the service rejects the request for good. */
async function follow(url, signal, handle) {
  let failures = 0;
  let next = url;
  while (!signal.aborted) {
    try {
      // With its cache, the browser would send If-None-Match by itself, and the service would wait for a change.
      const response = await fetch(next, { signal: withTimeout(signal), cache: "no-store" });
      if (response.status === 503) {
        showStatus("the service is busy; trying again", "trouble");
        await pause(Number(response.headers.get("Retry-After") ?? 1) + Math.random(), signal);
        continue;
      }
      if (response.status === 410 || (response.status === 404 && next !== url)) {
        // The records were dropped, or the service has restarted: begin again with the oldest record.
        next = url;
        await pause(0.2, signal);
        continue;
      }
      if (response.status >= 400 && response.status < 500) {
        const reason = await reasonOf(response);
        if (!signal.aborted) problem.textContent = `The service refuses ${url}: ${reason}`;
        return;
      }
      if (!response.ok && response.status !== 304) throw new Error(`status ${response.status}`);
      failures = 0;
      showStatus("live", "live");
      next = (await handle(response)) ?? next;
    } catch (error) {
      if (signal.aborted) return;
      // Exponential backoff up to half a minute, with jitter so that clients do not all come at once.
      failures += 1;
      showStatus("not connected; trying again", "trouble");
      await pause(Math.min(2 ** failures, 30) * (0.5 + Math.random() / 2), signal).catch(() => {});
    }
  }
}

function nextLink(response) {
  const link = /<([^>]*)>;\s*rel="next"/.exec(response.headers.get("Link") ?? "");
  return link ? new URL(link[1], response.url).href : null;
}

function appendRecord(record) {
  const item = document.createElement("p");
  if (typeof record?.from === "string" && typeof record?.text === "string") {
    const who = document.createElement("b");
    who.textContent = record.from;
    item.append(who, record.text);
  } else {
    // Some other client appended this record.
    const code = document.createElement("code");
    code.textContent = JSON.stringify(record);
    item.append(code);
  }
  feed.append(item);
}

async function handleRecords(response) {
  if (response.status === 200) {
    const page = await response.json();
    const atEnd = feed.scrollHeight - feed.scrollTop - feed.clientHeight < 40;
    page.records.forEach(appendRecord);
    while (feed.childElementCount > MAX_RECORDS) feed.firstElementChild.remove();
    if (atEnd) feed.scrollTop = feed.scrollHeight;
  }
  return nextLink(response);
}

async function handlePresence(response) {
  const { version, online: names } = await response.json();
  online.replaceChildren(...names.map((name) => {
    const item = document.createElement("li");
    item.textContent = name;
    item.classList.toggle("self", name === nameField.value);
    return item;
  }));
  at("count").textContent = `(${names.length})`;
  await sendHeartbeat();
  return `presence?wait=${PRESENCE_WAIT}&version=${encodeURIComponent(version)}`;
}

async function sendHeartbeat() {
  if (nameField.validity.valid) {
    const signal = withTimeout(presencePoll.signal);
    await fetch(`presence/${encodeURIComponent(nameField.value)}`, { method: "POST", signal });
  }
}

function leave(name) {
  // `keepalive` lets the request outlive the page.
  fetch(`presence/${encodeURIComponent(name)}`, { method: "DELETE", keepalive: true }).catch(() => {});
}

/** Fills in the topic that the address names, or the lobby if it names none or no valid one. */
function fillInTopic() {
  let named = location.hash.slice(1);
  try {
    named = decodeURIComponent(named);
  } catch {
    // Not decoded, it still contains a percent sign, and is refused below.
  }
  topicField.value = named || LOBBY;
  problem.textContent = "";
  if (!topicField.validity.valid) {
    problem.textContent = `${named} is not a valid topic name; this is the ${LOBBY}`;
    topicField.value = LOBBY;
  }
}

function openTopic() {
  fillInTopic();
  topic = topicField.value;
  feedPoll.abort();
  feedPoll = new AbortController();
  document.title = `${topic} \u2013 Topics`;
  feed.replaceChildren();
  follow(`topics/${topic}?wait=${FEED_WAIT}`, feedPoll.signal, handleRecords);
}

at("choose").addEventListener("submit", (event) => {
  event.preventDefault();
  location.hash = topicField.value;
});

at("send").addEventListener("submit", async (event) => {
  event.preventDefault();
  const text = at("text");
  problem.textContent = "";
  try {
    const response = await fetch(`topics/${topic}`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ from: nameField.value, text: text.value }),
    });
    if (!response.ok) throw new Error(await reasonOf(response));
    text.value = "";
  } catch (error) {
    problem.textContent = `Not sent: ${error.message}`;
  }
  text.focus();
});

let lastName = nameField.value;
nameField.addEventListener("change", () => {
  if (!nameField.validity.valid) return;
  leave(lastName);
  lastName = nameField.value;
  sessionStorage.setItem("name", lastName);
  sendHeartbeat().catch(() => {});
});

window.addEventListener("hashchange", openTopic);
window.addEventListener("pagehide", () => {
  // Otherwise the response that this name is offline would be followed by a heartbeat.
  presencePoll.abort();
  leave(lastName);
});

// A page that returns from the browser's back/forward cache has lost its polls.
window.addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });

openTopic();
sendHeartbeat().catch(() => {});
follow("presence", presencePoll.signal, handlePresence);
