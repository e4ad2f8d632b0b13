// The page: its list of nodes, its addresses, its theme.
"use strict";

(() => {
  const docs = window.sqlrunDocs;
  const { make, at, count } = docs;
  const GROUPS = { model: "Models", seed: "Seeds", source: "Sources", exposure: "Exposures", macro: "Macros" };
  const THEMES = ["system", "light", "dark"];
  // Folders are open in a list of at most this length, and an overview shows at most this number of models at first.
  const SMALL = 60;
  const FIRST = 100;
  const BAD = { fail: "failed", error: "error", warn: "warning" };
  let turn = 0;

  // ── the list ───────────────────────────────────────────────────────────────────────────────────────────────────

  const folder = (node) => {
    if (node.kind !== "model") return "";
    const parts = node.file.split("/").slice(0, -1);
    return (parts[0] === "models" ? parts.slice(1) : parts).join("/");
  };

  function mark(node) {
    if (!(node.worst in BAD)) return null;
    return make("span", { class: `dot ${node.worst}`, title: BAD[node.worst] }, make("span", { class: "hidden" }, ` (${BAD[node.worst]})`));
  }

  const entries = (nodes) => make("ul", {}, nodes.map((node) => make("li", {}, docs.link(node), mark(node))));

  function list() {
    const box = at("nodes");
    for (const [kind, title] of Object.entries(GROUPS)) {
      const mine = docs.data.nodes.filter((node) => node.kind === kind);
      if (!mine.length) continue;
      const folders = new Map();
      for (const node of mine) folders.set(folder(node), [...(folders.get(folder(node)) ?? []), node]);
      const inside = [...folders].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, nodes]) => {
        nodes.sort((a, b) => (a.name < b.name ? -1 : 1));
        if (!name) return entries(nodes);
        const part = make("details", { open: mine.length <= SMALL }, make("summary", {}, `${name} (${nodes.length})`));
        // A closed folder gets its links when it opens.
        const fill = () => { if (part.open && part.children.length === 1) part.append(entries(nodes)); };
        part.addEventListener("toggle", fill);
        part.fill = (node) => {
          if (!nodes.includes(node)) return;
          part.open = true;
          fill();
        };
        fill();
        return part;
      });
      box.append(make("h2", {}, `${title} (${mine.length})`), ...inside);
    }
  }

  function current(node) {
    if (node) for (const part of at("nodes").querySelectorAll("details")) part.fill(node);
    for (const link of at("nodes").querySelectorAll("a")) {
      const is = node !== null && link.getAttribute("href") === docs.address(node);
      if (is) {
        link.setAttribute("aria-current", "page");
        link.scrollIntoView({ block: "nearest" });
      } else link.removeAttribute("aria-current");
    }
  }

  // ── the overview ───────────────────────────────────────────────────────────────────────────────────────────────

  function overview() {
    const { data } = docs;
    const of = (kind) => data.nodes.filter((node) => node.kind === kind);
    const bad = data.nodes.filter((node) => node.worst in BAD);
    const row = (node) => [[docs.link(node), mark(node)], folder(node) || "–", node.strategy || node.materialized,
      docs.number(node.rows), String(node.checks), String(node.examples), node.summary];
    const heads = ["Model", "Folder", "Strategy", "Rows", "Tests", "Examples", "Description"];
    const models = of("model");
    const box = make("div", {}, docs.table("Models", heads, models.slice(0, FIRST).map(row)));
    const more = make("button", { type: "button", onclick: () => {
      box.replaceChildren(docs.table("Models", heads, models.map(row)));
      box.querySelector(".wide").focus();
      more.remove();
    } }, `Show all ${count(models.length, "model")}`);
    const published = data.published ? `tick ${data.published.tick}, as of ${data.published.as_of}` : "nothing yet";
    return [
      make("h1", { tabIndex: -1 }, data.project),
      docs.facts([["Published", published], ["Environment", data.environment || "production"],
        ...Object.entries(GROUPS).map(([kind, title]) => [title, of(kind).length ? docs.number(of(kind).length) : null]),
        ["Tests", docs.number(data.nodes.reduce((sum, node) => sum + node.checks, 0))],
        ["Unit tests", docs.number(data.nodes.reduce((sum, node) => sum + node.examples, 0))]]),
      make("p", {}, make("a", { href: "#graph" }, "Open the graph")),
      bad.length ? docs.section("bad", "Models whose last tests did not all pass",
        make("ul", {}, bad.map((node) => make("li", {}, docs.link(node), ` ${BAD[node.worst]}`)))) : null,
      docs.section("models", "Models", box, models.length > FIRST ? more : null),
      of("exposure").length ? docs.section("exposures", "Exposures",
        make("ul", {}, of("exposure").map((node) => make("li", {}, docs.link(node), node.summary ? `: ${node.summary}` : "")))) : null,
      make("footer", {}, make("p", { class: "small" },
        `Generated ${data.generated_at} by sqlrun ${data.version}. Viewers: Cytoscape.js, markdown-it and Prism, MIT License: `,
        docs.listed(data.licenses.map((file, place) => make("a", { href: file }, `text ${place + 1}`))), ".")),
    ];
  }

  // ── addresses ──────────────────────────────────────────────────────────────────────────────────────────────────

  function decoded(text) {
    try {
      return decodeURIComponent(text);
    } catch {
      return text;
    }
  }

  function found(kind, name) {
    return docs.data.nodes.find((node) => node.kind === kind && node.name === name) ?? null;
  }

  async function content([kind, name, more]) {
    if (!kind || kind === "main") return { parts: overview(), title: "" };
    if (kind === "graph") {
      const node = docs.ids.get(name) ?? null;
      const steps = Number(more) > 0 ? Number(more) : 2;
      return { ...(await docs.showGraph(node, steps)), title: "Graph", node };
    }
    const node = kind === "column" ? docs.ids.get(name) ?? null : found(kind, name);
    if (node !== null && kind === "column") {
      const parts = await docs.showColumn(node, more ?? "");
      if (parts) return { parts, title: docs.label(node.id, more), node };
    } else if (node !== null) return { parts: await docs.showNode(node), title: node.name, node, section: more };
    return { parts: [make("h1", { tabIndex: -1 }, "Not found"), make("p", {}, `This project has no ${[kind, name, more].filter(Boolean).join(" ")}.`)], title: "Not found" };
  }

  let last = "";

  async function route(first) {
    const mine = ++turn;
    const parts = location.hash.slice(1).split("/").map(decoded);
    let shown;
    try {
      shown = await content(parts);
    } catch (error) {
      shown = { parts: [make("h1", { tabIndex: -1 }, "Can't show this page"), make("p", {}, error.message)], title: "Error" };
    }
    // A later address has been asked for meanwhile.
    if (mine !== turn) return;
    const main = at("main");
    const same = last !== "" && last === parts.slice(0, 2).join("/") && Boolean(shown.section);
    if (!same) {
      docs.leaveGraph();
      main.replaceChildren(...shown.parts.filter((one) => one != null));
      main.className = parts[0] === "graph" ? "with-graph" : "";
      document.title = shown.title ? `${shown.title} · ${docs.data.project}: docs` : `${docs.data.project}: docs`;
      window.scrollTo(0, 0);
      shown.shown?.();
      current(shown.node ?? null);
    }
    last = parts.slice(0, 2).join("/");
    const heading = (shown.section && at(`h-${shown.section}`)) || main.querySelector("h1");
    if (!first || shown.section) heading.focus({ preventScroll: !shown.section });
    if (shown.section) heading.scrollIntoView();
    menu(false);
    document.documentElement.dataset.ready = String(mine);
  }

  // ── the frame ──────────────────────────────────────────────────────────────────────────────────────────────────

  function menu(open) {
    at("menu").setAttribute("aria-expanded", String(open));
    document.body.classList.toggle("menu-open", open);
  }

  // Storage may be forbidden.
  const stored = {
    get() { try { return localStorage.getItem("sqlrun-docs-theme"); } catch { return null; } },
    put(value) { try { localStorage.setItem("sqlrun-docs-theme", value); } catch { /* the theme lasts as long as the page */ } },
  };

  function theme(name) {
    const chosen = THEMES.includes(name) ? name : "system";
    document.documentElement.dataset.theme = chosen;
    at("theme").textContent = `Theme: ${chosen}`;
    docs.redrawGraph?.();
    return chosen;
  }

  document.addEventListener("DOMContentLoaded", () => {
    theme(stored.get());
    list();
    docs.startSearch();
    at("theme").addEventListener("click", () => {
      const now = document.documentElement.dataset.theme;
      stored.put(theme(THEMES[(THEMES.indexOf(now) + 1) % THEMES.length]));
    });
    at("menu").addEventListener("click", () => menu(at("menu").getAttribute("aria-expanded") !== "true"));
    at("skip").addEventListener("click", (event) => {
      event.preventDefault();
      at("main").focus();
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => docs.redrawGraph?.());
    window.addEventListener("hashchange", () => route(false));
    route(true);
  });
})();
