// A dashboard's page: choose the dashboard, request its figures, draw them and refresh them.

import { chooser } from "/static/chooser.js";
import { at, make, say } from "/static/elements.js";
import { lists } from "/static/lists.js";
import { listen } from "/static/live.js";
import { cards, late, numbers, trend } from "/static/numbers.js";
import { ask, note, path, Refused, signedIn, signing, wanted } from "/static/session.js";
import { language, speak, spoken, text } from "/static/texts.js";
import { moved } from "/static/trend.js";
import { ago, count, long, money, plural, times, width, writer } from "/static/words.js";

const TRIES = 4;
const LOOK_EVERY = 60_000;
const AT_ONCE = 300;
const MY_CLOCK = "sqlrun.clock";

const page = { board: null, id: null, hours: Number(wanted.get("hours")) || 24, measure: null };
// The shown figures, all from one tick: {tick, id, entity, windows by hours, hours, first, write, writers, times}.
let shown = null;
let drawLists = () => {};
// The promise of the page's layout, which is built once.
let laidOut = null;
let number = 0;
let waiting = null;
let connection = null;
let isStale = false;
// For operators: the numbers of recorded losses by the hours of a window.
let losses = {};

const pause = (ms) => new Promise((done) => setTimeout(done, ms));
const trended = () => page.board.measures.filter((measure) => measure.trend);

// Request all figures of the page; repeat it until all are from one tick.
async function fetched(id) {
  for (let tries = 0; tries < TRIES; tries += 1) {
    const one = [page.board.api, id];
    const answers = await Promise.all([
      ...(trended().length ? [ask(path([...one, "hours"]))] : []),
      ...page.board.windows.map((hours) => ask(path([...one, "windows"], { hours }))),
    ]);
    if (answers.every((answer) => answer.tick === answers[0].tick)) {
      const hours = trended().length ? answers.shift() : null;
      return { tick: answers[0].tick, hours, first: hours ?? answers[0], windows: new Map(answers.map((found) => [found.hours, found])) };
    }
    await pause(AT_ONCE);
  }
  throw new Refused(0, text("busy"));
}

async function firstEntity() {
  const { api, entity } = page.board;
  const answer = await ask(path([api], { limit: 2 }));
  const found = answer[entity.plural];
  at("choose").hidden = found.length + (answer.next ? 1 : 0) < 2;
  return found[0]?.id ?? null;
}

// Request and show the figures; discard an answer if a later request has begun.
async function load() {
  const mine = (number += 1);
  clearTimeout(waiting);
  try {
    await (laidOut ??= declared());
    const first = await firstEntity();
    const id = page.id ?? first;
    if (id === null) throw new Refused(204, "");
    const found = await fetched(id);
    if (mine === number) render(id, found);
  } catch (error) {
    if (!page.board) laidOut = null;
    if (mine === number) failed(error);
  }
}

// Return the entity's clock; the reader's if they chose it or the entity has no time zone.
function clockOf(zone) {
  const mine = times();
  const theirs = zone ? times(zone) : mine;
  const own = localStorage.getItem(MY_CLOCK) === "mine";
  at("clock").hidden = theirs.zone === mine.zone;
  say(at("clock"), text(own ? "theirClock" : "myClock"));
  return own ? mine : theirs;
}

function render(id, found) {
  const { board } = page;
  const entity = found.first[board.entity.name];
  const same = shown && shown.id === id && shown.tick === found.tick;
  const news = shown && shown.id === id ? moved(shown.hours, found.hours, board.entity.name, trended()) : [];
  if (!shown || shown.id !== id) at("late").hidden = true;
  const write = money(entity.currency);
  const writers = Object.fromEntries(board.measures.map((measure) => [measure.name, writer(measure, write)]));
  shown = { ...found, id, entity, write, writers, times: clockOf(entity.time_zone) };
  page.id = id;
  if (!found.windows.has(page.hours)) page.hours = board.windows.includes(24) ? 24 : board.windows[0];
  note({ [board.entity.name]: id, hours: page.hours });
  say(at("name"), entity.name || entity.id);
  say(at("place"), entity[board.entity.place] ?? "");
  document.title = `${entity.name || entity.id}: ${spoken(board.title)}`;
  say(at("zone"), text("zone", { zone: shown.times.zone.replaceAll("_", " ") }));
  only("shown");
  at("shown").classList.remove("loading");
  at("shown").setAttribute("aria-busy", "false");
  isStale = found.first.stale;
  draw();
  if (news.length) late(news, trended(), writers, shown.times);
  if (!same) hear();
}

function draw() {
  const found = shown.windows.get(page.hours);
  for (const button of at("windows").children) button.setAttribute("aria-pressed", String(Number(button.value) === page.hours));
  for (const button of at("measures").children) button.setAttribute("aria-pressed", String(button.value === page.measure));
  numbers(page.board, found, shown.writers);
  drawLists(shown, found);
  const measures = trended();
  if (shown.hours) trend(shown.hours, page.hours, measures.find(({ name }) => name === page.measure), measures, shown.writers, shown.times);
  incomplete();
  clock();
}

// Say that lines of the window were lost; to operators also how many losses are recorded.
function incomplete() {
  const many = losses[page.hours] ?? 0;
  at("incomplete").hidden = shown.windows.get(page.hours).complete !== false;
  at("losses").hidden = !many;
  say(at("losses"), many ? text(`loss_${plural(many)}`, { n: count(many) }) : "");
}

// Announce new figures to screen readers.
function hear() {
  const found = shown.windows.get(page.hours);
  const said = page.board.measures.filter((measure) => !measure.ratios.length).map((measure) => {
    const written = shown.writers[measure.name].full(found[measure.name]);
    const label = spoken(measure.label);
    // German nouns have a capital letter in any position.
    return spoken(measure.many) ? written : `${language === "de" ? label : label.toLocaleLowerCase(language)} ${written}`;
  });
  say(at("heard"), text("heard", { time: shown.times.clock(found.as_of), window: width(page.hours), what: said.join(", ") }));
}

// Show the age of the figures by the server's clock, since the device's may be wrong.
function clock() {
  if (!shown) return;
  const { as_of: asOf, age, received } = shown.first;
  const seconds = age + Math.max(0, Date.now() - received) / 1000;
  const now = +new Date(asOf) + 1000 * seconds;
  const time = shown.times.moment(asOf, now);
  // Until when the tick has the changes of a database.
  const { complete_to: upTo } = shown.windows.get(page.hours);
  const until = upTo ? [`, ${text("upTo")} `, make("time", { dateTime: upTo }, shown.times.moment(upTo, now))] : [];
  at("as-of-text").replaceChildren(`${text("asOf")} `, make("time", { dateTime: asOf }, time), `, ${ago(seconds)}`, ...until);
  at("dot").classList.toggle("open", connection === "open" && !isStale);
  const old = seconds < 60 ? "" : text("old", { age: long(seconds) });
  if (connection instanceof Error) say(at("banner"), text("away", { old }));
  else say(at("banner"), isStale ? text("stale", { old }) : "");
}

// Show one part of the page and hide the others.
function only(id) {
  for (const part of ["shown", "problem", "sign-in"]) at(part).hidden = part !== id;
}

function failed(error) {
  if (error.status === 401) {
    shown = null;
    say(at("banner"), "");
    say(at("sign-in-why"), signedIn() ? text("refused", { why: error.message }) : text("whose", nouns()));
    only("sign-in");
    at("token").focus();
    return;
  }
  const name = page.board?.entity.name;
  const foreign = error.status === 404 && page.id && page.id === wanted.get(name);
  if (foreign && !shown) {
    // The token doesn't own the entity in the address: show one that it owns.
    page.id = null;
    wanted.delete(name);
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
  say(at("problem-title"), text(none ? "noneYet" : "cannot"));
  say(at("problem-text"), none ? text("soon") : error.message.replace(/\.?$/, "."));
  only("problem");
}

// Request a new tick, after a random pause, so that not all pages request it at once.
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
    losses = health.losses ?? {};
    if (shown) incomplete();
  } catch {
    // Ignored: the stream of ticks shows whether there is a connection.
  }
  clock();
}

const nouns = () => ({ noun: spoken(page.board?.entity.noun) });

function pressable(place, buttons, pressed) {
  at(place).replaceChildren(...buttons.map(([value, label]) =>
    make("button", { type: "button", value, "aria-pressed": String(value === pressed) }, label)));
}

// Choose the dashboard in the address; at "/" the first one with an entity that the token may see.
async function declared() {
  const { dashboards } = await ask(path(["dashboards"]));
  if (!dashboards.length) throw new Refused(404, text("noBoard"));
  const named = dashboards.find(({ api }) => location.pathname === `/${api}`);
  let board = named ?? dashboards[0];
  if (dashboards.length > 1) {
    const nothing = (error) => {
      // The first dashboard is unknown until this request succeeds: retry later.
      if (!named && error.status !== 401) throw error;
      return false;
    };
    const seen = await Promise.all(dashboards.map(({ api, entity }) =>
      ask(path([api], { limit: 1 })).then((found) => found[entity.plural].length > 0).catch(nothing)));
    const some = dashboards.filter((_, place) => seen[place]);
    board = named ?? some[0] ?? board;
    at("others").replaceChildren(...some.filter((one) => one !== board).map((one) => make("a", { href: `/${one.api}` }, spoken(one.title))));
    at("others").hidden = !at("others").children.length;
  }
  page.board = board;
  begin(board);
}

// Build the layout of a dashboard's page.
function begin(board) {
  document.head.append(make("link", { rel: "manifest", href: `/static/${board.api}.webmanifest` }));
  speak(nouns());
  document.title = spoken(board.title);
  say(at("name"), spoken(board.title));
  page.id = wanted.get(board.entity.name);
  page.measure = trended()[0]?.name ?? null;
  pressable("windows", board.windows.map((hours) => [String(hours), width(hours)]), String(page.hours));
  pressable("measures", trended().map(({ name, label }) => [name, spoken(label)]), page.measure);
  at("measures").hidden = trended().length < 2;
  at("trend").hidden = !trended().length;
  cards(board.measures);
  drawLists = lists(board);
  chooser(board, (id) => {
    page.id = id;
    load();
  });
}

at("windows").addEventListener("click", ({ target }) => {
  if (!target.value) return;
  page.hours = Number(target.value);
  note({ hours: page.hours });
  for (const button of at("windows").children) button.setAttribute("aria-pressed", String(button === target));
  if (!shown) return;
  draw();
  hear();
});
at("measures").addEventListener("click", ({ target }) => {
  if (!target.value || !shown) return;
  page.measure = target.value;
  draw();
});
at("clock").addEventListener("click", () => {
  if (localStorage.getItem(MY_CLOCK)) localStorage.removeItem(MY_CLOCK);
  else localStorage.setItem(MY_CLOCK, "mine");
  if (shown) render(shown.id, shown);
});
at("retry").addEventListener("click", load);
signing();
speak(nouns());
load();
look();
listen(heardOf, connected);
setInterval(clock, 1000);
setInterval(look, LOOK_EVERY);
