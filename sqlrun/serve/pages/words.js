// Numbers, money and times as a reader of this page writes them.

const COUNT = new Intl.NumberFormat();
const SHARE = new Intl.NumberFormat(undefined, { style: "percent", maximumFractionDigits: 1 });
const HOUR = 3_600_000;

export const count = (number) => COUNT.format(number);

// Write how much more: without a sign, which is drawn beside it; large ones without digits that nobody reads.
export function share(change) {
  const size = Math.abs(change);
  return size >= 10 ? `${COUNT.format(Math.round(size + 1))}×` : SHARE.format(size >= 1 ? Math.round(100 * size) / 100 : size);
}

// How amounts of a restaurant are written: in its currency, or as bare numbers where that isn't known.
export function money(currency) {
  const digits = { minimumFractionDigits: 2, maximumFractionDigits: 2 };
  try {
    const format = new Intl.NumberFormat(undefined, currency ? { style: "currency", currency } : digits);
    return (amount) => format.format(amount);
  } catch {
    const format = new Intl.NumberFormat(undefined, digits);
    return (amount) => `${format.format(amount)} ${currency}`;
  }
}

// How times of a restaurant are written: in its time zone, or in UTC where that isn't known.
export function times(zone) {
  let timeZone = zone || "UTC";
  try {
    new Intl.DateTimeFormat(undefined, { timeZone });
  } catch {
    timeZone = "UTC";
  }
  const format = (options) => {
    const made = new Intl.DateTimeFormat(undefined, { timeZone, ...options });
    return (time) => made.format(new Date(time));
  };
  const clock = format({ hour: "numeric", minute: "2-digit" });
  const day = format({ weekday: "short", day: "numeric", month: "short" });
  const weekday = format({ weekday: "short" });
  const name = format({ year: "numeric", month: "2-digit", day: "2-digit" });
  return {
    zone: timeZone, clock, day, weekday,
    // A time of today is told by the clock alone.
    moment: (time, now = Date.now()) => (name(time) === name(now) ? clock(time) : `${day(time)}, ${clock(time)}`),
    hour: (time) => `${weekday(time)} ${clock(time)}–${clock(+new Date(time) + HOUR)}`,
  };
}

const plural = (number, noun) => `${count(number)} ${noun}${number === 1 ? "" : "s"}`;

// Tell how long seconds are, in one unit.
export function long(seconds) {
  if (seconds < 3600) return plural(Math.floor(seconds / 60), "minute");
  if (seconds < 48 * 3600) return plural(Math.floor(seconds / 3600), "hour");
  return plural(Math.floor(seconds / 86_400), "day");
}

export const ago = (seconds) => (seconds < 60 ? "just now" : `${long(seconds)} ago`);

// Name a window.
export const width = (hours) => (hours >= 48 && hours % 24 === 0 ? plural(hours / 24, "day") : plural(hours, "hour"));

export { plural };
