// Ranked lists: the first items of a window at once, the others on demand.

import { at, make } from "/static/elements.js";
import { ask, path } from "/static/session.js";
import { filled, spoken, text } from "/static/texts.js";
import { count, width, writer } from "/static/words.js";

const FIRST = 3;

// Create the cards of a dashboard's lists. Return a function that draws them for the shown entity and window.
export function lists(board) {
  const cards = board.lists.map(card);
  at("lists").replaceChildren(...cards.map((one) => one.element));
  at("lists").hidden = !cards.length;
  return (shown, found) => cards.forEach((one) => one.draw(board, shown, found));
}

function card(ranked) {
  const name = `list-${ranked.name}`;
  const [items, more] = [make("ol", { id: name, class: "ranked" }), make("button", { type: "button", class: "quiet" })];
  const element = make("section", { class: "card", "aria-labelledby": `${name}-title` },
    make("h2", { id: `${name}-title` }, spoken(ranked.title)), items, more);
  let opened = false;
  let last = null;
  let whole = null; // all items, as last requested: {of, rows}
  let missing = false; // the server has only the first items

  const of = ({ shown, found }) => `${shown.id} ${found.hours} ${shown.tick}`;

  async function all() {
    const mine = last;
    try {
      const answer = await ask(path([mine.board.api, mine.shown.id, "lists", ranked.name], { hours: mine.found.hours }));
      if (answer.tick === mine.shown.tick) whole = { of: of(mine), rows: answer[ranked.name] };
    } catch (error) {
      missing = error.status === 404;
    }
    if (last && of(last) === of(mine)) redraw();
  }

  function redraw() {
    const { shown, found } = last;
    const held = found[ranked.name];
    const known = whole?.of === of(last) ? whole.rows : held;
    const rows = opened ? known : held.slice(0, FIRST);
    const most = Math.max(1, ...rows.map((row) => Number(row[ranked.value])));
    const none = filled(spoken(ranked.empty) || text("empty"), { window: width(found.hours) });
    items.replaceChildren(...(rows.length ? rows.map((row) => item(row, ranked, shown.write, most)) : [make("li", {}, make("span", { class: "dim" }, none))]));
    more.hidden = held.length === 0 || !((ranked.all && !missing) || held.length > FIRST);
    more.textContent = text(opened ? "fewer" : "more");
    more.setAttribute("aria-expanded", String(opened));
    more.setAttribute("aria-controls", name);
    if (opened && ranked.all && !missing && known === held) all();
  }
  more.addEventListener("click", () => {
    opened = !opened;
    redraw();
  });
  const draw = (board, shown, found) => {
    last = { board, shown, found };
    missing = false;
    redraw();
  };
  return { element, draw };
}

function item(row, ranked, amount, most) {
  const bar = make("i");
  bar.style.width = `${Math.max(0, Math.min(100, (100 * Number(row[ranked.value])) / most))}%`;
  const value = row[ranked.value];
  const number = value === null ? "–" : typeof value === "string" && value.includes(".") ? writer({ format: "number" }, amount).alone(value) : count(value);
  const money = ranked.money && row[ranked.money] != null ? make("span", { class: "dim" }, ` · ${amount(row[ranked.money])}`) : null;
  return make("li", {}, make("span", {}, String((ranked.label && row[ranked.label]) || row[ranked.item])), make("b", {}, number, money),
    make("span", { class: "bar", "aria-hidden": "true" }, bar));
}
