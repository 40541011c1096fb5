// A list of names with their number, such as who is online.

import { element } from "./element.js";

export class Roster {
  #list;
  #count;
  #draw;
  #names = [];

  /** `draw` makes what a list item contains: a text or an element for each name. */
  constructor(list, count, draw) {
    this.#list = list;
    this.#count = count;
    this.#draw = draw;
  }

  /** Shows `names` if they are given, otherwise those from before, drawn anew. */
  show(names = this.#names) {
    this.#names = names;
    this.#count.textContent = `(${names.length})`;
    this.#list.replaceChildren(...names.map((name) => element("li", "", this.#draw(name))));
  }
}
