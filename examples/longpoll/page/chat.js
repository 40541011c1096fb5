// A topic's feed and who is online, each followed by a long poll: ask, wait for the answer, ask again from there.

const WAIT = 25; // Seconds; proxies often give up on an answer after 30 or 60.
const BEAT = 5; // The same for presence: after each answer, and so at least so often, there is a heartbeat.
const PATIENCE = WAIT + 10; // After so long without an answer the connection is lost, even if nobody says so.
const KEPT = 500; // Records on the page.
const LOBBY = "lobby";

const at = (id) => document.getElementById(id);
const [feed, online, status, problem] = ["feed", "online", "status", "problem"].map(at);
const [nameField, topicField] = ["name", "topic"].map(at);

nameField.value = sessionStorage.getItem("name") ?? `guest-${Math.floor(Math.random() * 9000 + 1000)}`;
let topic; // The one that is open, whatever has been typed since.
let following = new AbortController();
const present = new AbortController();

function show(text, kind) {
  // Only what is new, or a screen reader would say it at every poll.
  if (status.textContent !== text) status.textContent = text;
  status.className = kind;
}

/** Resolves after some seconds; rejects at once when nobody waits any more. */
function pause(seconds, signal) {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const timer = setTimeout(resolve, seconds * 1000);
    signal.addEventListener("abort", () => { clearTimeout(timer); reject(signal.reason); }, { once: true });
  });
}

/** Aborted when nobody waits any more, or nothing comes of it in time. */
const patience = (signal) => AbortSignal.any([signal, AbortSignal.timeout(PATIENCE * 1000)]);

/** Why there is no answer but a refusal: a sentence, or a list of what is wrong with the request. */
async function refusal(response) {
  const { detail } = await response.json().catch(() => ({}));
  const why = Array.isArray(detail) ? detail.map((one) => one.msg).join("; ") : detail;
  return why ? `${why} (status ${response.status})` : `status ${response.status}`;
}

/** Hands every answer of `url` to `take`, which says what to ask for next; tries again when there is none.
 *  Ends when what it asks for makes no sense. */
async function follow(url, signal, take, every = 0) {
  let failures = 0;
  let from = url;
  while (!signal.aborted) {
    try {
      // Not by the browser's cache: it would name what it has by itself, and the service would wait for more.
      const response = await fetch(from, { signal: patience(signal), cache: "no-store" });
      if (response.status === 503) {
        show("busy; waiting", "trouble");
        await pause(Number(response.headers.get("Retry-After") ?? 1) + Math.random(), signal);
        continue;
      }
      if (response.status === 410 || (response.status === 404 && from !== url)) {
        // These records are gone, or the service was started anew: begin with the oldest that there is.
        from = url;
        await pause(0.2, signal);
        continue;
      }
      if (response.status >= 400 && response.status < 500) {
        const why = await refusal(response);
        if (!signal.aborted) problem.textContent = `Not asking for ${url} any more: ${why}`;
        return;
      }
      if (!response.ok && response.status !== 304) throw new Error(`status ${response.status}`);
      failures = 0;
      show("live", "live");
      from = (await take(response)) ?? from;
      if (every) await pause(every, signal);
    } catch (error) {
      if (signal.aborted) return;
      // Twice as long each time, up to half a minute; not everybody at once.
      failures += 1;
      show("not connected; trying again", "trouble");
      await pause(Math.min(2 ** failures, 30) * (0.5 + Math.random() / 2), signal).catch(() => {});
    }
  }
}

function next(response) {
  const link = /<([^>]*)>;\s*rel="next"/.exec(response.headers.get("Link") ?? "");
  return link ? new URL(link[1], response.url).href : null;
}

function append(record) {
  const item = document.createElement("p");
  if (typeof record?.from === "string" && typeof record?.text === "string") {
    const who = document.createElement("b");
    who.textContent = record.from;
    item.append(who, record.text);
  } else {
    // Recorded by something else than this page.
    const code = document.createElement("code");
    code.textContent = JSON.stringify(record);
    item.append(code);
  }
  feed.append(item);
}

async function takeRecords(response) {
  if (response.status === 200) {
    const page = await response.json();
    const atEnd = feed.scrollHeight - feed.scrollTop - feed.clientHeight < 40;
    page.records.forEach(append);
    while (feed.childElementCount > KEPT) feed.firstElementChild.remove();
    if (atEnd) feed.scrollTop = feed.scrollHeight;
  }
  return next(response);
}

async function takeOnline(response) {
  const { version, online: names } = await response.json();
  online.replaceChildren(...names.map((name) => {
    const item = document.createElement("li");
    item.textContent = name;
    item.classList.toggle("self", name === nameField.value);
    return item;
  }));
  at("count").textContent = `(${names.length})`;
  await beat();
  return `presence?wait=${BEAT}&version=${encodeURIComponent(version)}`;
}

async function beat() {
  if (nameField.validity.valid) {
    const signal = patience(present.signal);
    await fetch(`presence/${encodeURIComponent(nameField.value)}`, { method: "POST", signal });
  }
}

function leave(name) {
  // Also when the page is being left.
  fetch(`presence/${encodeURIComponent(name)}`, { method: "DELETE", keepalive: true }).catch(() => {});
}

/** Fills in the topic that the address names: the lobby when it names none, or what can be none. */
function fillInTopic() {
  let named = location.hash.slice(1);
  try {
    named = decodeURIComponent(named);
  } catch {
    // It stays as it is, which is no topic's name with a percent sign in it.
  }
  topicField.value = named || LOBBY;
  problem.textContent = "";
  if (!topicField.validity.valid) {
    problem.textContent = `No topic can be named ${named}; this is the ${LOBBY}`;
    topicField.value = LOBBY;
  }
}

function open() {
  fillInTopic();
  topic = topicField.value;
  following.abort();
  following = new AbortController();
  document.title = `${topic} \u2013 Topics`;
  feed.replaceChildren();
  follow(`topics/${topic}?wait=${WAIT}`, following.signal, takeRecords);
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
    if (!response.ok) throw new Error(await refusal(response));
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
  beat().catch(() => {});
});

window.addEventListener("hashchange", open);
window.addEventListener("pagehide", () => {
  // Or the answer that this one is offline would be followed by a heartbeat.
  present.abort();
  leave(lastName);
});

// A page that comes back from the browser's cache of pages has lost its polls.
window.addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });

open();
beat().catch(() => {});
follow("presence", present.signal, takeOnline);
