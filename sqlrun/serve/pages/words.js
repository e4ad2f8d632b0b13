// Formats of numbers, money and times in the reader's locale.

import { language, locale, spoken, text } from "/static/texts.js";

const COUNT = new Intl.NumberFormat(locale);
const SHARE = new Intl.NumberFormat(locale, { style: "percent", maximumFractionDigits: 1 });
const NUMBER = new Intl.NumberFormat(locale, { maximumFractionDigits: 2 });
const PLURALS = new Intl.PluralRules(language);
const AGO = new Intl.RelativeTimeFormat(locale, { numeric: "always" });
const HOUR = 3_600_000;
export const NONE = "–";

// Return the form of a noun for a number: "one" or "other".
export const plural = (number) => (PLURALS.select(number) === "one" ? "one" : "other");

// Integers beyond 2^53 and decimals arrive as texts, and are formatted with all their digits.
export const count = (number) => COUNT.format(number);

// Format a relative change, without its sign, which the page draws separately. Large changes are rounded.
export function share(change) {
  const size = Math.abs(change);
  return size >= 10 ? `${COUNT.format(Math.round(size + 1))}×` : SHARE.format(size >= 1 ? Math.round(100 * size) / 100 : size);
}

// Return the format of an entity's amounts: in its currency, or as plain numbers if that is unknown.
export function money(currency) {
  const digits = { minimumFractionDigits: 2, maximumFractionDigits: 2 };
  try {
    const format = new Intl.NumberFormat(locale, currency ? { style: "currency", currency } : digits);
    return (amount) => format.format(amount);
  } catch {
    const format = new Intl.NumberFormat(locale, digits);
    return (amount) => `${format.format(amount)} ${currency}`;
  }
}

// Return the formats of a measure's values: `alone`, and `full` with the unit.
export function writer(measure, amount) {
  const plain = {
    count, number: (value) => NUMBER.format(value), money: amount, percent: (value) => SHARE.format(value), seconds: short,
  }[measure.format];
  const alone = (value) => (value === null || value === undefined ? NONE : plain(value));
  const unit = (value) => spoken(PLURALS.select(Math.abs(Number(value))) === "one" ? measure.one : measure.many);
  return { alone, full: (value) => [alone(value), value === null ? "" : unit(value)].filter(Boolean).join(" ") };
}

const measured = (unit, display, number) => new Intl.NumberFormat(locale, { style: "unit", unit, unitDisplay: display, maximumFractionDigits: 1 }).format(number);

// Format seconds in a suitable unit.
function short(seconds) {
  const size = Math.abs(Number(seconds));
  if (size < 120) return measured("second", "short", Number(seconds));
  return size < 7200 ? measured("minute", "short", seconds / 60) : measured("hour", "short", seconds / 3600);
}

// Return the formats of an entity's times: in its time zone; in UTC if the browser doesn't know that; in the reader's
// if the entity has none.
export function times(zone) {
  let timeZone = zone || Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";
  try {
    new Intl.DateTimeFormat(locale, { timeZone });
  } catch {
    timeZone = "UTC";
  }
  const format = (options) => {
    const made = new Intl.DateTimeFormat(locale, { timeZone, ...options });
    return (time) => made.format(new Date(time));
  };
  const clock = format({ hour: "numeric", minute: "2-digit" });
  const day = format({ weekday: "short", day: "numeric", month: "short" });
  const weekday = format({ weekday: "short" });
  const name = format({ year: "numeric", month: "2-digit", day: "2-digit" });
  return {
    zone: timeZone, clock, day, weekday,
    // Without the day for a time of today.
    moment: (time, now = Date.now()) => (name(time) === name(now) ? clock(time) : `${day(time)}, ${clock(time)}`),
    hour: (time) => `${weekday(time)} ${clock(time)}–${clock(+new Date(time) + HOUR)}`,
  };
}

// Return a suitable unit for seconds, and their number of it, rounded down.
const unitOf = (seconds) => {
  if (seconds < 3600) return ["minute", Math.floor(seconds / 60)];
  return seconds < 48 * 3600 ? ["hour", Math.floor(seconds / 3600)] : ["day", Math.floor(seconds / 86_400)];
};

// Format a duration in one unit, written out.
export const long = (seconds) => measured(unitOf(seconds)[0], "long", unitOf(seconds)[1]);

export function ago(seconds) {
  const [unit, many] = unitOf(seconds);
  return seconds < 60 ? text("now") : AGO.format(-many, unit);
}

// Format the width of a window, or a number of hours.
export const width = (hours) => (hours >= 48 && hours % 24 === 0 ? measured("day", "long", hours / 24) : measured("hour", "long", hours));
export const hoursOf = (many) => measured("hour", "long", many);
