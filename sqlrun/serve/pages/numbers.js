// Draws what a tick says of a restaurant: numbers and what they were, dishes, the trend, what has moved.

import { chart } from "/static/chart.js";
import { at, make, say } from "/static/elements.js";
import { hours as hoursOf } from "/static/trend.js";
import { count, plural, share, width } from "/static/words.js";

const MOST_MOVED = 3;
const WEEK = 168;

// Tell how much more a number is than one of before; `null` where there is none to compare with.
function change(now, before, than) {
  if (before === null) return null;
  if (!before) return now ? make("span", {}, `none ${than}`) : null;
  const by = now / before - 1;
  const even = Math.abs(by) < 0.0005;
  const [sign, word] = even ? ["=", "as"] : by > 0 ? ["▲", "more than"] : ["▼", "less than"];
  return make("span", {},
    make("b", { class: even ? "" : by > 0 ? "more" : "less" },
      make("span", { "aria-hidden": "true" }, `${sign} `), even ? "same" : share(by)),
    make("span", { class: "unseen" }, ` ${word}`), ` ${even ? "as" : "vs"} ${than}`);
}

function changes(element, found, value) {
  const { hours, before, last_week: week } = found;
  const list = [change(value(found), before && value(before), `the ${width(hours)} before`)];
  if (hours !== WEEK) list.push(change(value(found), week && value(week), "a week ago"));
  const said = list.filter(Boolean);
  element.replaceChildren(...(said.length ? said : [make("span", {}, "Nothing earlier to compare with")]));
}

const perOrder = (found) => (found.n_orders ? found.total_sales / found.n_orders : 0);

// The three numbers. `guests` is a number, `undefined` while it is awaited, `null` where it isn't served.
export function numbers(found, guests, money) {
  const beside = (id) => at(id).parentElement.querySelector(".changes");
  say(at("orders"), count(found.n_orders));
  changes(beside("orders"), found, (one) => one.n_orders);
  say(at("sales"), money(found.total_sales));
  changes(beside("sales"), found, (one) => Number(one.total_sales));
  at("third").classList.toggle("waiting", guests === undefined);
  if (guests === null) {
    say(at("third-name"), "Average order");
    say(at("third"), found.n_orders ? money(perOrder(found)) : "–");
    changes(beside("third"), found, perOrder);
    return;
  }
  say(at("third-name"), "Guests");
  say(at("third"), count(guests ?? 0));
  const spent = guests ? make("span", {}, make("b", {}, money(found.total_sales / guests)), " per guest") : null;
  const average = found.n_orders ? make("span", {}, make("b", {}, money(perOrder(found))), " per order") : null;
  beside("third").replaceChildren(...[spent, average].filter(Boolean));
}

export function dishes(found) {
  const most = Math.max(1, ...found.top_dishes.map((dish) => dish.quantity));
  const rows = found.top_dishes.map((dish) => {
    const bar = make("i");
    bar.style.width = `${Math.max(0, (100 * dish.quantity) / most)}%`;
    return make("li", {}, make("span", {}, dish.dish_name || dish.dish_id), make("b", {}, count(dish.quantity)),
      make("span", { class: "bar", "aria-hidden": "true" }, bar));
  });
  const none = make("li", {}, make("span", { class: "dim" }, `Nothing was ordered in the last ${width(found.hours)}.`));
  at("dishes").replaceChildren(...(rows.length ? rows : [none]));
}

const short = new Intl.NumberFormat(undefined, { notation: "compact", maximumFractionDigits: 1 });
const STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 1e4, 2e4, 5e4, 1e5, 1e6, 1e7];
let show = null;
let tell = null;

// Draw the hours of a window, a day at least: as a chart, and as a table.
export function trend(answer, hours, measure, money, times) {
  const all = hoursOf(answer);
  const shown = Math.max(24, Math.min(hours, WEEK));
  const last = all.slice(-shown);
  const earlier = shown <= 48 ? all.slice(-shown - 24, -24) : [];
  const value = (hour) => hour[measure];
  const write = (hour) => (measure === "sales" ? money(hour.sales) : plural(hour.orders, "order"));
  const compared = earlier.length === last.length && earlier.some(value);
  const whole = `Last ${width(shown)}${compared ? "; dashed: a day earlier" : ""}`;
  tell = (index) => {
    const hour = last[index];
    const before = hour && compared ? `; a day earlier ${write(earlier[index])}` : "";
    say(at("pointed"), hour ? `${times.hour(hour.at)}: ${write(hour)}${hour.running ? " so far" : ""}${before}` : whole);
  };
  show ??= chart(at("chart"), (index) => tell(index));
  tell(null);
  const best = last.reduce((most, hour) => (value(hour) > value(most) ? hour : most));
  at("chart").setAttribute("aria-label", `${measure === "sales" ? "Sales" : "Orders"} hour by hour, last ${width(shown)}. ` +
    (value(best) ? `Most: ${write(best)}, ${times.hour(best.at)}.` : "None.") + " The table below has all hours.");
  show({
    at: last.map((hour) => hour.at), now: last.map(value), running: last.map((hour) => hour.running),
    before: last.map((_, place) => (compared ? value(earlier[place]) : null)),
    times, steps: STEPS, short: (number) => short.format(number),
  });
  table(last, money, times);
}

function table(hours, money, times) {
  const cell = (name, text) => make(name, { class: "amount" }, text);
  const rows = hours.toReversed().map((hour) => make("tr", {},
    make("th", { scope: "row" }, times.hour(hour.at) + (hour.running ? " (so far)" : "")),
    cell("td", count(hour.orders)), cell("td", money(hour.sales))));
  const head = make("tr", {}, make("th", { scope: "col" }, "Hour"), cell("th", "Orders"), cell("th", "Sales"));
  at("table").replaceChildren(make("table", {}, make("caption", { class: "unseen" }, "Orders and sales hour by hour"),
    make("thead", {}, head), make("tbody", {}, ...rows)));
}

// Say which hours that were over are told otherwise now, and by how much.
export function late(found, money, times) {
  const [orders, sales] = [found.reduce((sum, one) => sum + one.orders, 0), found.reduce((sum, one) => sum + one.sales, 0)];
  const signed = (number, write) => `${number < 0 ? "−" : "+"}${write(Math.abs(number))}`;
  const lines = found.toReversed().slice(0, MOST_MOVED).map((one) => make("li", {},
    `${times.hour(one.at)}: ${count(one.was.orders)} → ${plural(one.is.orders, "order")}, ${signed(one.sales, money)}`));
  const more = found.length - lines.length;
  if (more) lines.push(make("li", {}, `and ${plural(more, "hour")} more`));
  const close = make("button", { type: "button", class: "quiet" }, "Got it");
  close.addEventListener("click", () => (at("late").hidden = true));
  const what = `Past numbers have moved: ${signed(orders, (many) => plural(many, "order"))}, ${signed(sales, money)}.`;
  at("late").replaceChildren(make("div", {}, make("p", {}, make("b", {}, what),
    " Orders came late, or were corrected or cancelled."), make("ul", {}, ...lines)), close);
  at("late").hidden = false;
}
