// The operator's page: tables of the operators' views.

import { at, make, say } from "/static/elements.js";
import { listen } from "/static/live.js";
import { GOOD, LEVELS } from "/static/outcomes.js";
import { ask, path, signedIn, signing, wanted } from "/static/session.js";
import { locale } from "/static/texts.js";
import { ago, count, long, times } from "/static/words.js";

const AGAIN = 30_000;
const { moment } = times("UTC");
const MANY = new Intl.NumberFormat(locale, { notation: "compact", maximumFractionDigits: 1 });
const SECONDS = new Intl.NumberFormat(locale, { maximumFractionDigits: 2 });

const when = (time) => (time ? moment(time) : "–");
const number = (value) => (value == null ? "–" : count(value));
const seconds = (value) => (value == null ? "–" : value < 120 ? `${SECONDS.format(value)} s` : long(value));
const bytes = (value) => (value == null ? "–" : `${MANY.format(value)}B`);
const state = (text, kind) => make("span", { class: `state ${kind}` }, text);
// What became of lines. Lines that were read are in one of the four after it; the last one must be 0.
const NUMBERS = ["read", "landed", "quarantined", "dropped", "gaps", "lost", "unexplained"];
const capital = (word) => word[0].toUpperCase() + word.slice(1);
const flagged = (name, value) => (value && (name === "lost" || name === "unexplained") ? state(count(value), "bad") : number(value));

// Add up the lines of all sources as one line of arithmetic.
function added(rows) {
  const sum = Object.fromEntries(NUMBERS.map((name) => [name, count(rows.reduce((all, row) => all + (row[`all_${name}`] ?? 0), 0))]));
  return `${sum.read} read = ${sum.landed} landed + ${sum.quarantined} quarantined + ${sum.dropped} dropped + ${sum.unexplained} unexplained; ${sum.lost} lost`;
}

// The views. `unfold` returns the shown rows of a row. A column has a title, a function that returns a row's cell, and a kind ("amount", "text" or none).
const VIEWS = [
  {
    name: "ticks", title: "Ticks", none: "No tick has run yet.",
    sum: (rows) => `${count(rows.filter((row) => row.published_at).length)} of the last ${count(rows.length)} published.`,
    columns: [
      ["Tick", (row) => String(row.tick), "amount"], ["As of", (row) => when(row.as_of)],
      ["State", (row) => (row.published_at ? state("published", "good") : state("not published", "bad"))],
      ["Took", (row) => seconds(row.took_seconds), "amount"], ["Work", (row) => seconds(row.seconds), "amount"],
      ["Rows changed", (row) => number(row.rows_changed), "amount"], ["Checks failed", (row) => number(row.checks_failed), "amount"],
      ["Engine", (row) => row.engine ?? "–"],
    ],
  },
  {
    name: "sources", title: "Sources", none: "No source has been measured yet.",
    sum: (rows) => (rows.some((row) => row.unusual) ? "Something is unusual." : "Nothing unusual."),
    columns: [
      ["Source", (row) => row.source], ["Watermark", (row) => when(row.watermark)],
      ["Lag", (row) => seconds(row.freshness_seconds), "amount"], ["Late by (95 %)", (row) => seconds(row.lateness_seconds), "amount"],
      ["Rows", (row) => number(row.rows), "amount"], ["Quarantined", (row) => number(row.quarantined), "amount"],
      ["State", (row) => (row.unusual ? state("unusual", "warn") : state("usual", "good"))],
    ],
  },
  {
    name: "lines", title: "Lines of sources", none: "No line has landed in the latest ticks.",
    sum: (rows) => `${added(rows)}, in the latest ticks.`,
    unfold: (row) => [
      { ...row, ticks: `tick ${row.tick}` },
      { ...row, ticks: `since tick ${row.since_tick}`, ...Object.fromEntries(NUMBERS.map((name) => [name, row[`all_${name}`]])) },
    ],
    columns: [
      ["Source", (row) => row.source, "name"], ["Model", (row) => row.model, "name"], ["Ticks", (row) => row.ticks],
      ...NUMBERS.map((name) => [capital(name), (row) => flagged(name, row[name]), "amount"]),
      ["Latest", (row) => when(row.newest_landed)],
    ],
  },
  {
    name: "losses", title: "Losses of sources", none: "No loss is recorded.",
    sum: (rows) => `${count(rows[0].of_all)} recorded${rows[0].of_all > rows.length ? `, the latest ${count(rows.length)} of them shown` : ""}.`,
    columns: [
      ["Source", (row) => row.source, "name"], ["Part", (row) => row.part, "name"], ["Lines", (row) => number(row.lines), "amount"],
      ["What", (row) => row.what, "text"], ["Accepted by", (row) => row.by || "–", "name"], ["Accepted", (row) => (row.at ? when(row.at) : "–")],
      ["Tick", (row) => String(row.tick), "amount"],
    ],
  },
  {
    name: "models", title: "Models", none: "No model has run stats yet.",
    sum: (rows) => `${seconds(rows.reduce((sum, row) => sum + row.seconds, 0))} in their newest ticks.`,
    columns: [
      ["Model", (row) => row.model], ["Tick", (row) => String(row.tick), "amount"], ["Strategy", (row) => row.strategy ?? "–"],
      ["Rows changed", (row) => number(row.rows_changed), "amount"], ["Rows read", (row) => number(row.rows_read), "amount"],
      ["Read", (row) => bytes(row.bytes_read), "amount"], ["Commits", (row) => number(row.commits), "amount"],
      ["Time", (row) => seconds(row.seconds), "amount"], ["Reason", (row) => row.reason || "–", "text"],
    ],
  },
  {
    name: "checks", title: "Checks", none: "No check has run yet.",
    fold: (row) => GOOD.includes(row.status), folded: (many) => `${count(many)} that passed`,
    sum: (rows) => [...new Map(rows.map((row) => [row.status, row.of_status]))].map(([name, many]) => `${count(many)} ${name}`).join(", "),
    columns: [
      ["Model", (row) => row.model], ["Check", (row) => [row.columns?.join(", "), row.expectation].filter(Boolean).join(": "), "text"],
      ["Severity", (row) => row.severity], ["State", (row) => state(row.status, LEVELS[row.status] ?? "")],
      ["Rows", (row) => `${number(row.unexpected)} of ${number(row.evaluated)}`, "amount"],
      ["Tick", (row) => String(row.tick), "amount"], ["Last failure", (row) => (row.last_bad_tick == null ? "never" : String(row.last_bad_tick)), "amount"],
    ],
  },
  {
    name: "quarantine", title: "Quarantine", none: "The quarantine is empty.",
    sum: (rows) => `${count(rows.reduce((sum, row) => sum + row.lines, 0))} lines for ${count(rows.length)} reasons.`,
    columns: [
      ["Model", (row) => row.model], ["Reason", (row) => row.reason, "text"], ["Lines", (row) => number(row.lines), "amount"],
      ["First", (row) => when(row.first_landed)], ["Last", (row) => when(row.last_landed)],
      ["Samples, masked", (row) => make("div", {}, ...row.samples.map((text) => make("code", {}, text))), "text"],
    ],
  },
];

// On a phone, each row is a card and each cell has its title before it; ARIA roles still identify a table.
const cell = (title, kind, inside) => make("td", { class: `${kind ?? ""} ${inside === "–" ? "nothing" : ""}`.trim(), role: "cell", "data-title": title }, inside);

function table(view, rows, name) {
  const head = view.columns.map(([title, , kind]) => make("th", { scope: "col", role: "columnheader", class: kind ?? "" }, title));
  const body = rows.map((row) => make("tr", { role: "row" }, ...view.columns.map(([title, write, kind]) => cell(title, kind, write(row)))));
  return make("div", { class: "wide", role: "region", tabIndex: 0, "aria-label": name },
    make("table", { role: "table" }, make("thead", { role: "rowgroup" }, make("tr", { role: "row" }, ...head)), make("tbody", { role: "rowgroup" }, ...body)));
}

// Add a view's card to the page, and return a function that draws its rows. Folded rows are below, open or closed as
// before.
function section(view) {
  const [told, place, summary, below] = [make("p", { class: "dim" }, "Loading …"), make("div"), make("summary"), make("div")];
  const rest = make("details", { hidden: true }, summary, below);
  const title = `${view.name}-title`;
  at("shown").append(make("section", { class: "card", "aria-labelledby": title }, make("h2", { id: title }, view.title), told, place, rest));
  const draw = (into, rows, name) => {
    const scrolled = into.firstChild?.scrollLeft ?? 0;
    into.replaceChildren(...(rows.length ? [table(view, rows, name)] : []));
    if (into.firstChild) into.firstChild.scrollLeft = scrolled;
  };
  return (rows) => {
    const folded = view.fold ? rows.filter(view.fold) : [];
    say(told, rows.length ? view.sum(rows) : view.none);
    draw(place, folded.length ? rows.filter((row) => !view.fold(row)) : rows.flatMap(view.unfold ?? ((row) => [row])), `${view.title} as a table`);
    draw(below, folded, `${view.title}, the others`);
    rest.hidden = !folded.length;
    if (folded.length) say(summary, view.folded(folded.length));
  };
}

const sections = new Map(VIEWS.map((view) => [view.name, section(view)]));
let health = null;
let away = null;
let waiting = null;
let asked = VIEWS.find(({ name }) => wanted.has(name))?.name ?? null;

// Scroll once to the section that the address names, such as #losses.
function lead() {
  if (asked) at(`${asked}-title`)?.scrollIntoView();
  asked = null;
}

function signInFor(why) {
  say(at("sign-in-why"), why);
  say(at("as-of"), "");
  at("shown").hidden = true;
  at("sign-in").hidden = false;
}

async function load() {
  clearTimeout(waiting);
  waiting = setTimeout(load, AGAIN);
  try {
    const answers = await Promise.all(VIEWS.map((view) => ask(path(["operator", view.name]))));
    answers.forEach(({ rows }, place) => sections.get(VIEWS[place].name)(rows));
    health = await ask(path(["health"])).catch((error) => (error.status === 503 ? { status: "unavailable" } : Promise.reject(error)));
    away = null;
    lead();
    if (health.as_of) say(at("heard"), `Tick ${health.tick}, as of ${when(health.as_of)}.`);
  } catch (error) {
    if (error.status === 401) return signInFor(signedIn() ? `The server doesn’t take your token: ${error.message}.` : "");
    if (error.status === 403) return signInFor("Your token is for owners; this page is for operators.");
    away = error;
  }
  clock();
}

function clock() {
  if (health?.as_of) {
    const age = health.age_seconds + Math.max(0, Date.now() - health.received) / 1000;
    say(at("as-of"), `Readers see tick ${health.tick}, as of ${when(health.as_of)}, ${ago(age)}`);
  } else if (health) say(at("as-of"), "No tick is published yet");
  const old = health?.status === "stale" ? "The shown tick is too old, or a newer one can’t be read." : "";
  say(at("banner"), away ? `${away.message.replace(/\.?$/, ".")} Trying again …` : [old, health?.problem].filter(Boolean).join(" "));
}

signing();
load();
listen(({ tick }) => tick !== health?.tick && load(), () => {});
setInterval(clock, 1000);
