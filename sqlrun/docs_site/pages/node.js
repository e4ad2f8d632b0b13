// The pages of a node and of a column.
"use strict";

(() => {
  const docs = window.sqlrunDocs;
  const { make, code, facts, section, table, listed, count } = docs;
  const LABELS = { model: "Model", seed: "Seed", source: "Source", exposure: "Exposure", macro: "Macro" };
  // Lists of neighbors longer than this are folded.
  const OPEN = 30;

  const idOf = (name) => (docs.ids.has(name) ? docs.ids.get(name) : null);
  const named = (name) => (idOf(name) ? docs.link(idOf(name)) : code(name));

  function folded(items) {
    if (items.length <= OPEN) return make("ul", { class: "inline" }, items.map((one) => make("li", {}, one)));
    return make("details", {}, make("summary", {}, `${items.length}`),
      make("ul", { class: "inline" }, items.map((one) => make("li", {}, one))));
  }

  // ── the page of a node ─────────────────────────────────────────────────────────────────────────────────────────

  function aboutNode(node, page) {
    const fresh = page.freshness && ["warn_after", "error_after"].filter((key) => page.freshness[key] != null)
      .map((key) => `${key.split("_")[0]} after ${page.freshness[key] / 60} minutes`).join(", ");
    return facts([
      ["Kind", page.materialized && page.materialized !== "table" ? `${node.kind}, ${page.materialized}` : node.kind],
      ["File", code(page.file)],
      ["Contract", page.contract_file && page.contract_file !== page.file ? code(page.contract_file) : null],
      ["Grain", page.grain && listed(page.grain.map(code))],
      ["Rows", page.rows == null ? null : page.rows.toLocaleString("en")],
      ["Tags", page.tags && page.tags.join(", ")],
      ["Event time", page.event_time && code(page.event_time)],
      ["Freshness", fresh],
      ["Format", page.format],
      ["Location", page.location && code(page.location)],
      ["Lands in", page.lands_in && named(page.lands_in)],
      ["New fields", page.on_schema_change],
      ["Type", page.type],
      ["Owner", page.owner && (page.email ? `${page.owner}, ${page.email}` : page.owner)],
      ["Maturity", page.maturity],
      ["URL", /^https?:/i.test(page.url ?? "") ? make("a", { href: page.url, rel: "noreferrer noopener" }, page.url) : page.url],
      ["Strategy", page.plan?.strategy && docs.badge("plain", page.plan.strategy)],
    ]);
  }

  function neighbours(node) {
    if (!node.reads.length && !node.readers.length) return null;
    return section("graph", "In the graph",
      facts([["Reads", node.reads.length ? folded(node.reads.map(docs.link)) : "nothing"],
        ["Read by", node.readers.length ? folded(node.readers.map(docs.link)) : "nothing"]]),
      make("p", {}, make("a", { href: `#graph/${encodeURIComponent(node.id)}` }, "Show in the graph")));
  }

  const columnsOf = (page) => (page.columns ?? []).filter((one) => one.name !== "*");

  function columns(node, page) {
    const found = columnsOf(page);
    if (!found.length) return null;
    const name = (one) => [make("a", { href: docs.columnAddress(node.id, one.name) }, one.name)];
    const isTested = (one) => (one.checks ?? []).some((place) => page.checks[place].label === "not null");
    const rules = (one) => [
      one.in_grain ? docs.badge("plain", "grain") : null,
      one.nullable === false && !isTested(one) ? docs.badge("plain", "not null") : null,
      ...(one.tags ?? []).map((tag) => docs.badge("plain", tag)),
      ...(one.checks ?? []).map((place) => check(page.checks[place])),
    ];
    return section("columns", `Columns (${found.length})`,
      table("Columns", ["Column", "Type", "Unit", "Description", "Tests"],
        found.map((one) => [name(one), code(one.type || "–"), one.unit || "", docs.describe(one.description), rules(one)]),
        "columns cards"));
  }

  const check = (one) => docs.badge(one.last ? one.last.css : "plain", one.label);

  function reasonOf(reason) {
    return [`${reason.code} ${reason.why}`, reason.place ? make("span", { class: "small" }, ` at ${reason.place}`) : null,
      reason.excerpt ? make("code", { class: "excerpt" }, reason.excerpt.trim()) : null,
      reason.instead ? make("p", {}, `Instead: ${reason.instead}`) : null];
  }

  const cost = (way) => `${way.strategy} ${way.rows == null ? "reads every row" : `reads about ${docs.number(way.rows)} rows`}`;

  function plan(page) {
    const about = page.plan;
    if (!about) return null;
    if (about.is_view) {
      return section("plan", "How it is maintained",
        make("p", {}, "A view: its query is written into the models that read it; nothing is stored."));
    }
    const limit = about.max_read_amplification;
    const rows = about.tables.map((one) => [
      [code(one.table), one.hidden ? make("span", { class: "small" }, " hidden: an inner result") : null],
      `${one.strategy}: ${one.what}`,
      make("ul", { class: "plain" }, one.ways.map((way) => make("li", {}, cost(way)))),
      one.reason.code === about.reason.code ? "the model's" : reasonOf(one.reason), listed(one.reads.map(code)), one.key.join(", ") || "–",
    ]);
    return section("plan", "How it is maintained",
      facts([["Strategy", [docs.badge("plain", about.strategy), ` ${page.what}`]],
        ["Reason", reasonOf(about.reason)],
        ["At worst", about.at_worst + (limit ? `, ${limit} rows read for each changed row` : "")],
        ["Order", about.order]]),
      table(`Tables, with the cost of ${docs.number(page.example_rows)} changed rows`,
        ["Table", "Strategy", `Cost of ${docs.number(page.example_rows)} changed rows`, "Reason", "Reads", "Key"], rows, "texts"),
      drops(about.drops));
  }

  function drops(rules) {
    if (!rules?.length) return null;
    return table("Dropped lines", ["Dropped where", "Reason", "Place"],
      rules.map((rule) => [code(rule.where), rule.reason, code(rule.place)]));
  }

  function queries(page) {
    if (page.compiled_sql == null) return null;
    const tables = page.plan.tables ?? [];
    const view = make("div", {});
    const show = (place) => view.replaceChildren(docs.sql(tables[place].statement, `Change query of ${tables[place].table}`));
    const choice = make("select", { "aria-label": "Table", onchange: () => show(choice.selectedIndex) },
      tables.map((one) => make("option", {}, one.table)));
    if (tables.length) {
      choice.selectedIndex = tables.length - 1;
      show(tables.length - 1);
    }
    const change = tables.length
      ? [make("h3", {}, "Change query", tables.length > 1 ? choice : null),
        make("p", { class: "small" }, `What a tick at ${docs.data.statements_at} runs five minutes after the previous one, on ${page.dialect}.`),
        view]
      : [make("h3", {}, "Change query"), make("p", {}, "A view has none.")];
    return section("sql", "SQL",
      make("div", { class: "pair" },
        make("div", {}, make("h3", {}, "Compiled query"),
          make("p", { class: "small" }, "The model after Jinja, in Spark SQL: it defines the table's rows."),
          docs.sql(page.compiled_sql, "Compiled query")),
        make("div", {}, ...change)),
      make("details", {}, make("summary", {}, `Source: ${page.file}`), docs.sql(page.source_sql, "Source of the model")));
  }

  function checks(page) {
    if (!page.checks?.length) return null;
    const words = (given) => listed(given.filter(([key]) => key !== "column" && key !== "column_list")
      .map(([key, value]) => code(`${key}: ${value ?? "NULL"}`)));
    const amount = (last) => (last.unexpected ? `${docs.number(last.unexpected)} of ${docs.number(last.evaluated)} rows, ` : "");
    const result = (last) => (last === null ? "never run" : [docs.badge(last.css, last.word),
      make("span", { class: "small" }, ` ${amount(last)}tick ${last.tick}${last.published ? "" : ", not published"}`),
      last.message && last.rank ? make("p", { class: "small" }, last.message) : null]);
    return section("checks", `Tests (${page.checks.length})`,
      table("Tests and their last results", ["Test", "Columns", "Arguments", "If it fails", "Last result"],
        page.checks.map((one) => [[one.label, one.description ? docs.describe(one.description) : null],
          one.columns.join(", ") || "–", words(one.arguments), `${one.severity}, ${one.on_fail}`, result(one.last)]), "cards"));
  }

  function stats(page) {
    if (!page.stats?.length) return null;
    return section("stats", "Last ticks",
      table("Run stats of the last ticks (receipts)",
        ["Tick", "As of", "Table", "Engine", "Strategy", "Rows in", "Rows read", "Rows changed", "Rows written", "Seconds"],
        page.stats.map((one) => [`${one.tick}${one.published ? "" : ", not published"}`, one.as_of, code(one.table),
          one.engine, one.strategy, ...["rows_in", "rows_read", "rows_changed", "rows_written"].map((key) => docs.number(one[key])),
          one.seconds?.toFixed(2) ?? "–"]), "numbers"));
  }

  // ── examples ───────────────────────────────────────────────────────────────────────────────────────────────────

  function rowsOf(title, given) {
    if (given.sql) return make("div", {}, make("h4", {}, title), docs.sql(given.sql, title));
    if (given.lines) return make("div", {}, make("h4", {}, title), make("pre", { tabIndex: 0, role: "group", "aria-label": title }, given.lines.join("\n")));
    const rows = given.rows;
    const value = (one) => (one === null ? make("span", { class: "small" }, "NULL") : one === false ? "" : one);
    if (!rows || !rows.rows.length) return make("div", {}, make("h4", {}, title), make("p", {}, "no rows"));
    const drawn = table(title, rows.columns, rows.rows.map((row) => row.map(value)), "values");
    return make("div", {}, make("h4", {}, title), drawn);
  }

  const WORDS = { whole: "Expected rows", added: "Expected: added", removed: "Expected: removed", quarantined: "Expected: quarantined" };

  function tick(one, place, many) {
    const changed = one.changes.flatMap((change) =>
      Object.entries(change.parts).map(([word, rows]) => rowsOf(`${change.input}: ${word}`, rows)));
    const wanted = Object.entries(one.expect).map(([word, rows]) => rowsOf(WORDS[word], rows));
    const when = one.as_of ? `as of ${one.as_of}` : "";
    return [many || when ? make("h4", { class: "tick" }, [many ? `Tick ${place + 1}` : "", when].filter(Boolean).join(", ")) : null,
      make("div", { class: "pair" }, changed.length ? make("div", {}, changed) : null, make("div", {}, wanted))];
  }

  function example(one) {
    const [first, ...later] = one.ticks;
    const inputs = one.given.map((given) => rowsOf(`Given ${given.input}`, given));
    const wanted = Object.entries(first.expect).map(([word, rows]) => rowsOf(WORDS[word], rows));
    const overrides = one.overrides.map(([key, value]) => code(`${key}: ${value ?? "NULL"}`));
    return make("article", {},
      make("h3", {}, one.name), docs.describe(one.description),
      facts([["Of the CTE", one.cte && code(one.cte)], ["As of", first.as_of], ["With", overrides], ["File", code(one.place)]]),
      one.sql ? docs.sql(one.sql, "Call of the macro") : null,
      make("div", { class: "pair" }, make("div", {}, inputs), make("div", {}, wanted)),
      ...later.flatMap((step, place) => tick(step, place + 1, true)));
  }

  function examples(page) {
    if (!page.examples?.length) return null;
    return section("examples", `Examples (${page.examples.length})`,
      make("p", { class: "small" }, "The unit tests: the rows that go in, and the rows that come out."), page.examples.map(example));
  }

  function firstRows(page) {
    if (!page.first_rows) return null;
    const shown = page.first_rows.rows.length;
    const title = shown < page.rows ? `First ${shown} of ${docs.number(page.rows)} rows` : "Rows";
    return section("rows", title, table(title, page.first_rows.columns,
      page.first_rows.rows.map((row) => row.map((value) => (value === null ? make("span", { class: "small" }, "NULL") : value))), "values"));
  }

  function jumps(node, sections) {
    if (sections.length < 3) return null;
    return make("nav", { class: "jumps", "aria-label": "On this page" }, sections.map((one) => {
      const heading = one.querySelector("h2");
      return make("a", { href: docs.address(node, heading.id.slice(2)) }, heading.textContent);
    }));
  }

  docs.showNode = async (node) => {
    const page = await docs.page(node);
    const sections = [columns(node, page), neighbours(node), plan(page), queries(page), checks(page), examples(page),
      stats(page), firstRows(page), node.kind === "macro" ? section("sql", "SQL", docs.sql(page.source_sql, "Macro")) : null,
      node.kind === "source" && page.drops.length ? section("drops", "Dropped lines", drops(page.drops)) : null,
    ].filter((one) => one !== null);
    return [make("p", { class: "kind" }, LABELS[node.kind]), make("h1", { tabIndex: -1 }, page.label || node.name),
      docs.describe(page.description), aboutNode(node, page), jumps(node, sections), ...sections];
  };

  // ── the page of a column ───────────────────────────────────────────────────────────────────────────────────────

  const HOW = {
    copied: "copied from another column", computed: "computed", constant: "a constant", given: "a column of the data itself",
  };

  function side(title, links, without) {
    return make("div", {}, make("h3", {}, title), links.length
      ? make("ul", {}, links.map((one) => make("li", {}, one))) : make("p", { class: "small" }, without));
  }

  const filters = ([id, column, clauses]) => [docs.columnLink(id, column), ` (${clauses.join(", ")})`];

  docs.showColumn = async (node, name) => {
    const page = await docs.page(node);
    const one = (page.columns ?? []).find((each) => each.name === name);
    if (!one) return null;
    const isRows = name === "*";
    const parts = [
      make("p", { class: "kind" }, isRows ? "Rows of " : "Column of ", docs.link(node)),
      make("h1", { tabIndex: -1 }, docs.label(node.id, name)),
      docs.describe(one.description ?? ""),
      facts([["Type", one.type && code(one.type)], ["Unit", one.unit], ["NULL", one.nullable === false ? "not allowed" : null],
        ["Grain", one.in_grain ? "yes" : null], ["Tags", (one.tags ?? []).join(", ")],
        ["Taken from", one.comes_from], ["Value", HOW[one.how]],
        ["Tests", (one.checks ?? []).map((place) => check(page.checks[place]))]]),
      section("lineage", "Lineage",
        make("div", { class: "lineage" },
          side("Made of", one.made_of.map(([id, column, field]) => docs.columnLink(id, column, field)),
            one.how === "given" ? "Nothing: it comes with the data." : "Nothing: a constant."),
          make("p", { class: "here" }, make("strong", {}, isRows ? "rows" : name), make("span", { class: "small" }, ` ${one.type ?? ""}`)),
          side("Part of", one.feeds.map(([id, column]) => docs.columnLink(id, column)), "No column.")),
        one.steps.length ? [make("h3", {}, "Expressions"), ...one.steps.map((step) =>
          make("div", {}, make("p", { class: "small" }, `${step.how} at ${step.at}`), docs.sql(step.sql, `Expression at ${step.at}`)))] : null,
        one.also.length ? [make("h3", {}, "Its rows also depend on"),
          make("ul", {}, one.also.map((each) => make("li", {}, ...filters(each))))] : null,
        one.filters.length ? [make("h3", {}, "It decides about rows of"),
          make("ul", {}, one.filters.map(([id, clauses]) => make("li", {}, named(id), ` (${clauses.join(", ")})`)))] : null),
    ];
    if (!isRows && one.made_of.length + one.also.length) {
      parts.push(make("p", {}, make("a", { href: docs.columnAddress(node.id, "*") }, `What decides about the rows of ${node.name}`)));
    }
    return parts;
  };
})();
