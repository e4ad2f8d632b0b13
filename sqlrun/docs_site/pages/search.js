// The search box: a combobox over the names of nodes and columns. `/` focuses it, arrows choose, Enter opens.
"use strict";

(() => {
  const docs = window.sqlrunDocs;
  const { make, at } = docs;
  const MOST = 30;
  let results = [];
  let chosen = -1;

  // Whole names come first, then beginnings, then beginnings of words, then other parts of names.
  function score(name, wanted) {
    const place = name.indexOf(wanted);
    if (place < 0) return 0;
    if (name === wanted) return 5;
    if (place === 0) return 4;
    return /[\W_]/.test(name[place - 1]) ? 3 : 2;
  }

  docs.find = (text) => {
    const wanted = text.trim().toLowerCase();
    if (!wanted) return [];
    const found = [];
    for (const node of docs.data.nodes) {
      const best = score(node.name.toLowerCase(), wanted) || (node.summary.toLowerCase().includes(wanted) ? 1 : 0);
      if (best) found.push({ best: best + 0.5, name: node.name, about: node.kind, address: docs.address(node) });
    }
    for (const [id, names] of docs.names ?? []) {
      for (const name of names) {
        const best = Math.max(score(name.toLowerCase(), wanted),
          wanted.includes(".") ? score(docs.label(id, name).toLowerCase(), wanted) : 0);
        if (best) found.push({ best, name: docs.label(id, name), about: "column", address: docs.columnAddress(id, name) });
      }
    }
    return found.sort((a, b) => b.best - a.best || a.name.length - b.name.length || (a.name < b.name ? -1 : 1));
  };

  function show() {
    const box = at("found");
    const all = docs.find(at("search").value);
    results = all.slice(0, MOST);
    chosen = results.length ? 0 : -1;
    box.replaceChildren(...results.map((one, place) =>
      make("li", { id: `found-${place}`, role: "option", "aria-selected": String(place === 0) },
        make("span", {}, one.name), make("span", { class: "small" }, one.about))));
    open(at("search").value.trim() !== "");
    if (at("search").value.trim()) docs.say(docs.count(all.length, "result"));
    if (!results.length) box.append(make("li", { class: "small", role: "option", "aria-disabled": "true" }, "Nothing found"));
    mark();
  }

  function open(is) {
    at("found").hidden = !is;
    at("search").setAttribute("aria-expanded", String(is));
    if (!is) at("search").removeAttribute("aria-activedescendant");
  }

  function mark() {
    results.forEach((_, place) => at(`found-${place}`).setAttribute("aria-selected", String(place === chosen)));
    if (chosen < 0) return;
    at("search").setAttribute("aria-activedescendant", `found-${chosen}`);
    at(`found-${chosen}`).scrollIntoView({ block: "nearest" });
  }

  function go(place) {
    if (!results[place]) return;
    location.hash = results[place].address;
    at("search").value = "";
    open(false);
    at("search").blur();
  }

  function keyed(event) {
    const moves = { ArrowDown: 1, ArrowUp: -1 };
    if (event.key in moves && results.length) {
      chosen = (chosen + moves[event.key] + results.length) % results.length;
      mark();
    } else if (event.key === "Enter") go(chosen);
    else if (event.key === "Escape") {
      if (at("found").hidden) at("search").value = "";
      open(false);
    } else return;
    event.preventDefault();
  }

  docs.startSearch = () => {
    const input = at("search");
    input.addEventListener("input", show);
    input.addEventListener("keydown", keyed);
    input.addEventListener("focus", () => docs.load(docs.data.columns).then(() => input.value && show()));
    input.addEventListener("blur", () => open(false));
    // A press would take the focus from the box before its click arrives.
    at("found").addEventListener("mousedown", (event) => event.preventDefault());
    at("found").addEventListener("click", (event) => {
      const item = event.target.closest("li");
      if (item) go([...at("found").children].indexOf(item));
    });
    document.addEventListener("keydown", (event) => {
      const typing = event.target.matches?.("input, select, textarea");
      if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
        event.preventDefault();
        input.focus();
        input.select();
      }
    });
  };
})();
