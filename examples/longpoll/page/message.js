// A record of a topic as the chat shows it. Other clients append records of any shape.

import { element } from "./element.js";

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const calendar = new Intl.DateTimeFormat(undefined, { dateStyle: "full" });

export class Message {
  constructor(record) {
    this.record = record;
    this.isChat = typeof record?.from === "string" && typeof record?.text === "string";
    this.id = typeof record?.id === "string" ? record.id : null;
    const sent = new Date(record?.at ?? NaN);
    // By the clock of the sender. Null when it does not tell.
    this.sent = Number.isNaN(sent.getTime()) ? null : sent;
  }

  get day() {
    return this.sent && calendar.format(this.sent);
  }

  /** The element that shows it. `state` is a note below it, such as that it has not arrived. */
  draw(own, ...state) {
    const text = this.isChat
      ? element("p", "text", this.record.text)
      : element("p", "text", element("code", "", JSON.stringify(this.record)));
    const head = element("p", "head");
    if (this.isChat) head.append(element("b", "from", own ? `${this.record.from} (you)` : this.record.from));
    if (this.sent) {
      const time = element("time", "", clock.format(this.sent));
      time.dateTime = this.sent.toISOString();
      time.title = `${this.day}, by the sender's clock`;
      head.append(time);
    }
    return element("div", own ? "message own" : "message", head, text, ...state);
  }
}
