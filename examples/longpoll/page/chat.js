// The page: people write messages to a topic, and see those of others, who is online, and which topics there are.

import { Author } from "./author.js";
import { Composer } from "./composer.js";
import { element } from "./element.js";
import { Feed } from "./feed.js";
import { Outbox } from "./outbox.js";
import { Reading } from "./reading.js";
import { Roster } from "./roster.js";
import { Subscription } from "./subscription.js";

const LOBBY = "lobby";
const NARROW = matchMedia("(max-width: 52rem)");

const at = (id) => document.getElementById(id);
const [status, problem, nameField, topicField] = ["status", "problem", "name", "topic"].map(at);

const author = new Author();
const feed = new Feed(at("messages"), author);
const reading = new Reading(at("feed"), at("to-end"));
const outbox = new Outbox(at("outbox"));
let topic;

const composer = new Composer(at("send"), at("text"), (text) => {
  outbox.add(author.record(text));
  reading.goToEnd();
});

const people = new Roster(at("online"), at("people-count"), (name) =>
  name === author.name ? element("b", "", `${name} (you)`) : name);

const topics = new Roster(at("topics"), at("topics-count"), (name) => {
  const link = element("a", "", name);
  link.href = `#${name}`;
  if (name === topic) link.setAttribute("aria-current", "page");
  return link;
});

const subscription = new Subscription(author.name, {
  onNews(page, online, topicList) {
    if (page) {
      const added = feed.add(page);
      outbox.arrived(new Set(page.records.map((record) => record?.id)));
      reading.note(page, added);
    }
    if (online) people.show(online.names);
    if (topicList) topics.show(topicList.names);
  },
  onHealth(level, text) {
    // A screen reader announces every assignment, also of the same text.
    if (status.textContent !== text) status.textContent = text;
    status.className = level;
  },
});

/** The topic that the address names, or the lobby if it names none or no valid one. */
function namedTopic() {
  let named = location.hash.slice(1);
  try {
    named = decodeURIComponent(named);
  } catch {
    // Not decoded, it still contains a percent sign, and is refused below.
  }
  topicField.value = named || LOBBY;
  if (topicField.validity.valid) return topicField.value;
  problem.textContent = `${named} is not a valid topic name; this is the ${LOBBY}.`;
  topicField.value = LOBBY;
  return LOBBY;
}

function openTopic() {
  problem.textContent = "";
  topic = namedTopic();
  feed.clear();
  for (const part of [outbox, composer, reading, subscription]) part.open(topic);
  topics.show();
}

at("choose").addEventListener("submit", (event) => {
  event.preventDefault();
  location.hash = topicField.value;
});

nameField.value = author.name;
nameField.addEventListener("change", () => {
  if (!nameField.reportValidity()) return;
  author.name = nameField.value;
  subscription.rename(author.name);
  people.show();
});

addEventListener("hashchange", openTopic);
addEventListener("pagehide", () => {
  subscription.leave();
  // The worker of the last tab ends with it. `keepalive` lets this request outlive both.
  if (!subscription.alone) return;
  fetch(`presence/${encodeURIComponent(author.name)}`, { method: "DELETE", keepalive: true }).catch(() => {});
});

// A page that returns from the browser's back/forward cache has left, and follows nothing.
addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });

/** The lists are open on a wide screen. On a narrow one they are closed at first, so that the messages have the room. */
function fold() {
  for (const list of document.querySelectorAll("details")) list.open = !NARROW.matches;
}
NARROW.addEventListener("change", fold);
fold();
openTopic();
