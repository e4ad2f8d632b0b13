// The owner's page: what is shown, and when it is asked for anew.

import { chooser } from "/static/chooser.js";
import { at, make, say } from "/static/elements.js";
import { listen } from "/static/live.js";
import { dishes, late, numbers, trend } from "/static/numbers.js";
import { ask, note, path, Refused, signedIn, signing, wanted } from "/static/session.js";
import { moved } from "/static/trend.js";
import { ago, count, long, money, times, width } from "/static/words.js";

const USUAL = [1, 24, 168];
const TRIES = 4;
const LOOK_EVERY = 60_000;
const AT_ONCE = 300;

const page = { widths: USUAL, hours: Number(wanted.get("hours")) || 24, measure: "orders", restaurant: wanted.get("restaurant") };
// What is shown, all of one tick: {tick, windows by hours, hours, guests, write, times}.
let shown = null;
let number = 0;
let waiting = null;
let connection = null;
let isStale = false;

const pause = (ms) => new Promise((done) => setTimeout(done, ms));

// Ask for all that is shown, until all of it is of one tick.
async function fetched(restaurant) {
  for (let tries = 0; tries < TRIES; tries += 1) {
    const one = ["restaurants", restaurant];
    const answers = await Promise.all([
      ask(path([...one, "hours"])),
      ...page.widths.map((hours) => ask(path([...one, "windows"], { hours }))),
    ]);
    if (answers.every((answer) => answer.tick === answers[0].tick)) {
      const [hours, ...windows] = answers;
      return { tick: hours.tick, hours, windows: new Map(windows.map((found) => [found.hours, found])) };
    }
    await pause(AT_ONCE);
  }
  throw new Refused(0, "Ticks follow each other too quickly.");
}

async function firstRestaurant() {
  const { restaurants, next } = await ask(path(["restaurants"], { limit: 2 }));
  at("choose").hidden = restaurants.length + (next ? 1 : 0) < 2;
  return restaurants[0]?.id ?? null;
}

// Ask anew and show it; an answer that was overtaken by a later question is left alone.
async function load() {
  const mine = (number += 1);
  clearTimeout(waiting);
  try {
    const first = await firstRestaurant();
    const id = page.restaurant ?? first;
    if (id === null) throw new Refused(204, "There is no restaurant yet.");
    const found = await fetched(id);
    if (mine === number) render(id, found);
  } catch (error) {
    if (mine === number) failed(error);
  }
}

function render(id, found) {
  const { restaurant } = found.hours;
  const news = shown && shown.id === id ? moved(shown.hours, found.hours) : [];
  const same = shown && shown.id === id && shown.tick === found.tick;
  if (!shown || shown.id !== id) at("late").hidden = true;
  shown = { ...found, id, guests: same ? shown.guests : undefined, write: money(restaurant.currency), times: times(restaurant.time_zone) };
  page.restaurant = id;
  if (!found.windows.has(page.hours)) page.hours = page.widths.includes(24) ? 24 : page.widths[0];
  note({ restaurant: id, hours: page.hours });
  say(at("name"), restaurant.name || restaurant.id);
  say(at("city"), restaurant.city ?? "");
  document.title = `${restaurant.name || restaurant.id}: orders and sales`;
  say(at("zone"), `Times in ${shown.times.zone.replaceAll("_", " ")}`);
  only("shown");
  at("shown").classList.remove("loading");
  at("shown").setAttribute("aria-busy", "false");
  isStale = found.hours.stale;
  draw();
  if (news.length) late(news, shown.write, shown.times);
  guests();
  if (!same) hear();
}

function draw() {
  const found = shown.windows.get(page.hours);
  for (const button of at("windows").children) button.setAttribute("aria-pressed", String(Number(button.value) === page.hours));
  for (const button of at("measures").children) button.setAttribute("aria-pressed", String(button.value === page.measure));
  const known = shown.guests instanceof Map ? (shown.guests.get(page.hours) ?? 0) : shown.guests;
  numbers(found, known, shown.write);
  dishes(found);
  trend(shown.hours, page.hours, page.measure, shown.write, shown.times);
  clock();
}

// Guests are a table of their own: where it isn't served, the average order is shown; where it is busy, it is asked again.
async function guests() {
  const mine = shown;
  for (let tries = 0; mine.guests === undefined && tries < TRIES; tries += 1) {
    try {
      const answer = await ask(path(["marts", "restaurant_customers"], { restaurant_id: mine.id }));
      if (answer.tick !== mine.tick) return;
      mine.guests = new Map(answer.rows.map((row) => [row.window_hours, row.n_customers]));
    } catch (error) {
      if (error.status !== 503 && error.status !== 429) mine.guests = null;
      else await pause(1000 * (error.after || 1));
    }
    if (mine !== shown) return;
  }
  mine.guests ??= null;
  if (mine === shown) draw();
}

// Say to those who can't see it what has come.
function hear() {
  const found = shown.windows.get(page.hours);
  say(at("heard"), `As of ${shown.times.clock(found.as_of)}, last ${width(page.hours)}: ` +
    `${count(found.n_orders)} orders, sales ${shown.write(found.total_sales)}.`);
}

// Tell how old what is shown is: by the server's clock, since this one may be wrong.
function clock() {
  if (!shown) return;
  const { as_of: asOf, age, received } = shown.hours;
  const seconds = age + Math.max(0, Date.now() - received) / 1000;
  const time = shown.times.moment(asOf, +new Date(asOf) + 1000 * seconds);
  at("as-of-text").replaceChildren("As of ", make("time", { dateTime: asOf }, time), `, ${ago(seconds)}`);
  at("dot").classList.toggle("open", connection === "open" && !isStale);
  const old = seconds < 60 ? "" : ` They are ${long(seconds)} old.`;
  if (connection instanceof Error) say(at("banner"), `No connection to the server: these numbers may have moved since.${old} Trying again …`);
  else say(at("banner"), isStale ? `Newer numbers should have come by now.${old}` : "");
}

// Show one of the page's parts alone.
function only(id) {
  for (const part of ["shown", "problem", "sign-in"]) at(part).hidden = part !== id;
}

function failed(error) {
  if (error.status === 401) {
    shown = null;
    say(at("banner"), "");
    say(at("sign-in-why"), signedIn() ? `The server doesn’t take your token: ${error.message}.` : "These numbers are for the restaurant’s owner.");
    only("sign-in");
    at("token").focus();
    return;
  }
  const foreign = error.status === 404 && page.restaurant && page.restaurant === wanted.get("restaurant");
  if (foreign && !shown) {
    // The address names one that isn't this token's: show its own.
    page.restaurant = null;
    wanted.delete("restaurant");
    load();
    return;
  }
  waiting = setTimeout(load, Math.max(5000, 1000 * error.after));
  if (shown && error.status !== 404) {
    if (error.status === 0) connection = error;
    clock();
    return;
  }
  const none = error.status === 503 || error.status === 204;
  say(at("problem-title"), none ? "No numbers yet" : "The numbers can’t be shown");
  say(at("problem-text"), none ? "This page shows the first ones as soon as they are there." : error.message.replace(/\.?$/, "."));
  only("problem");
}

// A tick has come: ask for it, not all pages in the same moment.
function heardOf({ tick }) {
  if (!shown || tick !== shown.tick) {
    clearTimeout(waiting);
    waiting = setTimeout(load, shown ? AT_ONCE * Math.random() : 0);
  }
}

function connected(state) {
  if (state?.status === 401) failed(state);
  else if (state?.status !== 503 || shown) connection = state;
  clock();
}

async function look() {
  if (document.hidden) return;
  try {
    const health = await ask(path(["health"]));
    isStale = health.status === "stale";
    at("operator").hidden = !("problem" in health);
  } catch {
    // The stream of ticks says whether there is a connection.
  }
  clock();
}

function buttons() {
  at("windows").replaceChildren(...page.widths.map((hours) =>
    make("button", { type: "button", value: String(hours), "aria-pressed": String(hours === page.hours) }, width(hours))));
}

// The project's windows stand in the description of the API.
async function widths() {
  try {
    const described = await ask("/openapi.json");
    const { parameters } = described.paths["/api/v1/restaurants/{restaurant}/windows"].get;
    page.widths = parameters.find((one) => one.name === "hours").schema.enum ?? USUAL;
  } catch {
    // The usual ones are asked for.
  }
}

at("windows").addEventListener("click", ({ target }) => {
  if (!target.value) return;
  page.hours = Number(target.value);
  note({ hours: page.hours });
  if (!shown) return buttons();
  draw();
  hear();
});
at("measures").addEventListener("click", ({ target }) => {
  if (!target.value || !shown) return;
  page.measure = target.value;
  draw();
});
at("retry").addEventListener("click", load);
signing();
chooser((id) => {
  page.restaurant = id;
  load();
});
buttons();
await widths();
buttons();
load();
look();
listen(heardOf, connected);
setInterval(clock, 1000);
setInterval(look, LOOK_EVERY);
