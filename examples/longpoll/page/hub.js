// The only long poll of a browser. All tabs of the service share it: over HTTP/1.1 a browser opens six connections
// to one host, and polls of their own would soon leave none of them for what the tabs send.

import { Health } from "./health.js";
import { Heartbeats } from "./heartbeats.js";
import { LongPoll } from "./long_poll.js";

const PATIENCE = 90; // Seconds. A tab answers all that it is told, so one that is silent for longer has gone.

/** What one tab shows: its topic, the place to which it has read, and the name of its person. */
class Tab {
  heard = Date.now();

  constructor(port) {
    this.port = port;
  }

  follow({ topic, place, turn, name }) {
    Object.assign(this, { topic, place, turn, name });
  }

  get followed() {
    return this.place === null ? this.topic : `${this.topic}:${this.place.log}:${this.place.offset}`;
  }

  tell(message) {
    this.port.postMessage(message);
  }
}

/** Polls for all tabs, each of which has a MessagePort, and tells each one its news.
 *
 *  A tab says {kind: "follow", topic, place, turn, name} first, and when its topic changes, {kind: "rename", name}, and
 *  {kind: "leave"} when it closes. It hears {kind: "news" | "health" | "company"}, and answers {kind: "here"}. When
 *  it hears {kind: "who"}, because it was silent for too long, it follows again. */
export class Hub {
  #tabs = new Set();
  #online = null;
  #topics = null;
  #asked = [];
  #health = new Health((worst) => this.#tellAll({ kind: "health", ...worst }));
  #heartbeats = new Heartbeats(this.#health);
  #poll = new LongPoll(() => this.#url(), (news) => this.#take(news), this.#health);

  join(port) {
    const tab = new Tab(port);
    port.onmessage = ({ data }) => {
      tab.heard = Date.now();
      if (data.kind === "follow") this.#follow(tab, data);
      else if (data.kind === "leave") this.#drop(tab);
      else if (!this.#tabs.has(tab)) tab.tell({ kind: "who" });
      else if (data.kind === "rename") this.#rename(tab, data.name);
    };
  }

  #follow(tab, wanted) {
    tab.follow(wanted);
    this.#tabs.add(tab);
    tab.tell({ kind: "health", ...this.#health.worst });
    tab.tell({ kind: "news", turn: tab.turn, page: null, online: this.#online, topics: this.#topics });
    this.#countNames();
    this.#poll.restart();
  }

  #rename(tab, name) {
    tab.name = name;
    this.#countNames();
  }

  #drop(tab) {
    if (!this.#tabs.delete(tab)) return;
    this.#countNames();
    if (this.#tabs.size) this.#poll.restart();
    else this.#poll.stop();
  }

  /** Keeps everybody online. Tells each tab whether no other one has its name: then its end is a farewell. */
  #countNames() {
    const names = Array.from(this.#tabs, (tab) => tab.name);
    this.#heartbeats.keep(new Set(names));
    for (const tab of this.#tabs) {
      tab.tell({ kind: "company", alone: names.filter((name) => name === tab.name).length === 1 });
    }
  }

  #url() {
    this.#asked = [...new Set(Array.from(this.#tabs, (tab) => tab.followed))];
    const query = new URLSearchParams(this.#asked.map((followed) => ["follow", followed]));
    query.set("online", this.#online?.version ?? "");
    query.set("topics", this.#topics?.version ?? "");
    return `news?${query}`;
  }

  #take(news) {
    this.#online = news.online ?? this.#online;
    this.#topics = news.topics ?? this.#topics;
    const pages = new Map(this.#asked.map((followed, index) => [followed, news.pages[index]]));
    for (const tab of this.#tabs) {
      const page = pages.get(tab.followed);
      tab.place = { log: page.log, offset: page.next };
      tab.tell({ kind: "news", turn: tab.turn, page, online: this.#online, topics: this.#topics });
    }
    const since = Date.now() - PATIENCE * 1000;
    for (const tab of this.#tabs) if (tab.heard < since) this.#drop(tab);
  }

  #tellAll(message) {
    for (const tab of this.#tabs) tab.tell(message);
  }
}
