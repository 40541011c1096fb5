// The page: one long poll after the other brings the messages of a topic, and who is online.

const WAIT = 25; // Seconds. Proxies often give up on an answer after 30 or 60.
const PATIENCE = 10; // Seconds. A connection can break without any sign of it.
const HEARTBEAT = 10; // Seconds. Several of them are less than the timeout of a session.
const SHOWN = 500; // Messages. Older ones are removed.

const at = (id) => document.getElementById(id);
const [status, messages, problem, nameField, topicField] = ["status", "messages", "problem", "name", "topic"].map(at);

let name = sessionStorage.getItem("name") ?? `guest-${Math.floor(Math.random() * 9000 + 1000)}`;
let topic;
let following = new AbortController();
let lastHeartbeat = -Infinity;

async function request(path, options = {}, seconds = 0) {
  const signals = [AbortSignal.timeout((seconds + PATIENCE) * 1000), options.signal].filter(Boolean);
  const response = await fetch(path, { cache: "no-store", ...options, signal: AbortSignal.any(signals) });
  if (response.ok) return response.status === 204 ? null : response.json();
  const { detail } = await response.json().catch(() => ({}));
  const reason = typeof detail === "string" ? detail : `status ${response.status}`;
  throw Object.assign(new Error(reason), { status: response.status });
}

const presence = () => `presence/${encodeURIComponent(name)}`;

/** Browsers slow down the timers of hidden tabs, but not their requests. So each poll comes after a heartbeat. */
async function beat(signal) {
  if (performance.now() - lastHeartbeat < HEARTBEAT * 1000) return;
  await request(presence(), { method: "POST", signal });
  lastHeartbeat = performance.now();
}

async function follow(signal) {
  let after = null;
  let people = "";
  let failures = 0;
  while (!signal.aborted) {
    try {
      await beat(signal);
      const query = new URLSearchParams({ people, wait: WAIT, ...(after && { after }) });
      const news = await request(`topics/${topic}?${query}`, { signal }, WAIT);
      if (signal.aborted) return;
      after = news.after;
      if (news.people) {
        people = news.people.version;
        at("people").textContent = news.people.names.join(", ");
      }
      show(news.records);
      report("live");
      failures = 0;
    } catch (error) {
      if (signal.aborted) return;
      if (error.status === 410) {
        // The records that were not read yet are gone. What is left of them begins with the oldest one.
        after = null;
        messages.replaceChildren();
        continue;
      }
      report(`${error.message}; trying again`, "trouble");
      // Twice as long after each failure, and not all clients at the same time.
      const seconds = Math.min(2 ** failures, 30) * (0.5 + Math.random() / 2);
      failures += 1;
      await new Promise((resolve) => setTimeout(resolve, seconds * 1000));
    }
  }
}

function report(text, level = "") {
  // A screen reader announces every assignment, also of the same text.
  if (status.textContent !== text) status.textContent = text;
  status.className = level;
}

function show(records) {
  const atEnd = messages.scrollHeight - messages.scrollTop - messages.clientHeight < 40;
  for (const { name, text, at } of records) {
    const line = document.createElement("p");
    const [time, from] = ["time", "b"].map((kind) => document.createElement(kind));
    time.dateTime = at;
    time.textContent = new Date(at).toLocaleTimeString([], { timeStyle: "short" });
    from.textContent = name;
    line.append(time, " ", from, " ", text);
    messages.append(line);
  }
  while (messages.childElementCount > SHOWN) messages.firstElementChild.remove();
  if (atEnd) messages.scrollTop = messages.scrollHeight;
}

function openTopic() {
  topicField.value = location.hash.slice(1);
  if (!topicField.validity.valid) topicField.value = "lobby";
  topic = topicField.value;
  document.title = `${topic} \u2013 Topics`;
  messages.replaceChildren();
  following.abort();
  following = new AbortController();
  follow(following.signal);
}

at("open").addEventListener("submit", (event) => {
  event.preventDefault();
  location.hash = topicField.value;
});

at("send").addEventListener("submit", async (event) => {
  event.preventDefault();
  const text = at("text").value;
  at("text").value = "";
  problem.textContent = "";
  try {
    const headers = { "Content-Type": "application/json" };
    await request(`topics/${topic}`, { method: "POST", headers, body: JSON.stringify({ name, text }) });
  } catch (error) {
    // Without an answer the service may have it all the same. Then it appears among the messages.
    problem.textContent = `Not sent: ${error.message}.`;
    at("text").value ||= text;
  }
});

nameField.value = name;
nameField.addEventListener("change", () => {
  if (!nameField.reportValidity()) return;
  leave();
  name = nameField.value;
  sessionStorage.setItem("name", name);
  lastHeartbeat = -Infinity;
  openTopic();
});

function leave() {
  // `keepalive` lets the request outlive the page.
  fetch(presence(), { method: "DELETE", keepalive: true }).catch(() => {});
}

addEventListener("hashchange", openTopic);
addEventListener("pagehide", leave);
// A page that returns from the browser's back/forward cache has left.
addEventListener("pageshow", (event) => event.persisted && location.reload());
openTopic();
