// The figures of an entity in a tick: measures with comparisons, the trend, and changed hours.

import { chart } from "/static/chart.js";
import { at, make, say } from "/static/elements.js";
import { language, locale, spoken, text } from "/static/texts.js";
import { hours as hoursOf } from "/static/trend.js";
import { hoursOf as hoursLong, share, width } from "/static/words.js";

const MOST_MOVED = 3;
const WEEK = 168;
// A longer number, in characters, has a smaller font.
const LONG = 14;

// Return the relative change from an earlier number; `null` if there is nothing to compare with.
function change(now, before, than) {
  if (now === null || before === null || before < 0) return null;
  if (!before) return now ? make("span", {}, `${text("none")} ${than}`) : null;
  const by = now / before - 1;
  const even = Math.abs(by) < 0.0005;
  const [sign, word] = even ? ["=", "as"] : by > 0 ? ["▲", "more_than"] : ["▼", "less_than"];
  return make("span", {},
    make("b", { class: even ? "" : by > 0 ? "more" : "less" },
      make("span", { "aria-hidden": "true" }, `${sign} `), even ? text("same") : share(by)),
    make("span", { class: "unseen" }, ` ${text(word)}`), ` ${even && language === "en" ? text("as") : text("versus")} ${than}`);
}

const numeric = (value) => (value === null || value === undefined ? null : Number(value));

function changes(found, name, compare) {
  const value = (one) => one && numeric(one[name]);
  const list = [];
  if (compare.includes("before")) list.push(change(value(found), value(found.before), text("before", { window: width(found.hours) })));
  // For a window of a week, both comparisons are the same.
  if (compare.includes("last_week") && !(found.hours === WEEK && compare.includes("before")))
    list.push(change(value(found), value(found.last_week), text("week")));
  const said = list.filter(Boolean);
  return said.length ? said : [make("span", {}, text("nothing"))];
}

function ratios(found, measure, measures, writers) {
  return measure.ratios.map(({ value, per, label }) => {
    const [above, below] = [numeric(found[value]), numeric(found[per])];
    if (!below || above === null) return null;
    const shape = measures.find(({ name }) => name === value).format;
    const write = shape === "count" ? { alone: (one) => new Intl.NumberFormat(locale, { maximumFractionDigits: 2 }).format(one) } : writers[value];
    return make("span", {}, make("b", {}, write.alone(above / below)), ` ${spoken(label)}`);
  }).filter(Boolean);
}

// Create the cards of the measures, once for each dashboard.
export function cards(measures) {
  at("numbers").replaceChildren(...measures.map(({ name, label }) =>
    make("div", {}, make("dt", {}, spoken(label)), make("dd", { id: `m-${name}`, class: "number" }, "0"), make("dd", { class: "changes" }))));
}

export function numbers(board, found, writers) {
  for (const measure of board.measures) {
    const number = at(`m-${measure.name}`);
    const written = writers[measure.name].alone(found[measure.name]);
    say(number, written);
    number.classList.toggle("long", written.length > LONG);
    const beside = measure.ratios.length
      ? ratios(found, measure, board.measures, writers)
      : measure.compared && board.compare.length ? changes(found, measure.name, board.compare) : [];
    number.nextElementSibling.replaceChildren(...beside);
  }
}

const compact = new Intl.NumberFormat(locale, { notation: "compact", maximumFractionDigits: 1 });
const scientific = new Intl.NumberFormat(locale, { notation: "scientific", maximumFractionDigits: 1 });
const short = (number) => (Math.abs(number) < 1e15 ? compact : scientific).format(number);
const POWERS = Array.from({ length: 24 }, (_, place) => place - 2);
const STEPS = POWERS.flatMap((power) => [1, 2, 5].map((digit) => Number(`${digit}e${power}`)));
let show = null;
let tell = null;

// Draw the hours of a window, at least a day, as a chart and as a table.
export function trend(answer, hours, measure, measures, writers, times) {
  const all = hoursOf(answer, measures);
  const shown = Math.max(24, Math.min(hours, WEEK));
  const last = all.slice(-shown);
  const earlier = shown <= 48 ? all.slice(-shown - 24, -24) : [];
  const value = (hour) => numeric(hour.values[measure.name]);
  const write = (hour) => writers[measure.name].full(hour.values[measure.name]);
  const compared = earlier.length === last.length && earlier.some(value);
  const whole = text("last", { window: width(shown) }) + (compared ? text("dashed") : "");
  tell = (index) => {
    const hour = last[index];
    const before = hour && compared ? text("earlier", { value: write(earlier[index]) }) : "";
    say(at("pointed"), hour ? `${times.hour(hour.at)}: ${write(hour)}${hour.running ? ` ${text("soFar")}` : ""}${before}` : whole);
  };
  show ??= chart(at("chart"), (index) => tell(index));
  tell(null);
  const best = last.reduce((most, hour) => (value(hour) > value(most) ? hour : most));
  const label = spoken(measure.label);
  at("chart").setAttribute("aria-label", [text("chart", { label, window: width(shown) }),
    value(best) ? text("most", { value: write(best), hour: times.hour(best.at) }) : text("noneAtAll"), text("below")].join(" "));
  show({
    at: last.map((hour) => hour.at), now: last.map(value), running: last.map((hour) => hour.running),
    before: last.map((_, place) => (compared ? value(earlier[place]) : null)),
    times, steps: measure.format === "count" ? STEPS.filter((step) => step >= 1) : STEPS, short,
  });
  table(last, measures, writers, times);
}

function table(hours, measures, writers, times) {
  const cell = (name, inside) => make(name, { class: "amount" }, inside);
  const labels = measures.map(({ label }) => spoken(label));
  const rows = hours.toReversed().map((hour) => make("tr", {},
    make("th", { scope: "row" }, times.hour(hour.at) + (hour.running ? ` (${text("soFar")})` : "")),
    ...measures.map(({ name }) => cell("td", writers[name].alone(hour.values[name])))));
  const head = make("tr", {}, make("th", { scope: "col" }, text("hour")), ...labels.map((label) => cell("th", label)));
  at("table").replaceChildren(make("table", {},
    make("caption", { class: "unseen" }, text("caption", { labels: labels.join(", ") })), make("thead", {}, head), make("tbody", {}, ...rows)));
}

// Show which past hours have changed, and by how much.
export function late(found, measures, writers, times) {
  const signed = (number, write) => `${number < 0 ? "−" : "+"}${write(Math.abs(number))}`;
  const sum = (name) => found.reduce((whole, one) => whole + one.by[name], 0);
  const [first, ...others] = measures;
  const lines = found.toReversed().slice(0, MOST_MOVED).map((one) => make("li", {}, [
    `${times.hour(one.at)}: ${writers[first.name].alone(one.was.values[first.name])} → ${writers[first.name].full(one.is.values[first.name])}`,
    ...others.map(({ name }) => signed(one.by[name], writers[name].full)),
  ].join(", ")));
  const more = found.length - lines.length;
  if (more) lines.push(make("li", {}, text("hoursMore", { hours: hoursLong(more) })));
  const close = make("button", { type: "button", class: "quiet" }, text("gotIt"));
  close.addEventListener("click", () => (at("late").hidden = true));
  const what = text("moved", { what: measures.map(({ name }) => signed(sum(name), writers[name].full)).join(", ") });
  at("late").replaceChildren(make("div", {}, make("p", {}, make("b", {}, what),
    ` ${text("late", { label: spoken(first.label) })}`), make("ul", {}, ...lines)), close);
  at("late").hidden = false;
}

