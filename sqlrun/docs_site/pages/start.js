// The namespace of the page, loading of its scripts, creation of elements. Content is text or elements, so no value of
// a project can become markup.
"use strict";

window.sqlrunDocs = (() => {
  const docs = { pages: new Map(), names: null, ids: new Map(), data: null, loading: new Map() };

  // The three calls of data files.
  docs.index = (data) => {
    docs.data = data;
    data.nodes.forEach((node, number) => {
      Object.assign(node, { number, reads: [], readers: [] });
      docs.ids.set(node.id, node);
    });
    for (const [from, to] of data.edges) {
      data.nodes[to].reads.push(data.nodes[from]);
      data.nodes[from].readers.push(data.nodes[to]);
    }
  };
  docs.node = ([name, page]) => docs.pages.set(name, page);
  docs.columns = (names) => { docs.names = names; };

  // A page from disk may run scripts of its folder, and can't read its other files.
  docs.load = (source) => {
    if (!docs.loading.has(source)) {
      docs.loading.set(source, new Promise((resolve, reject) => {
        const script = document.createElement("script");
        script.src = source;
        script.onload = resolve;
        script.onerror = () => {
          docs.loading.delete(source);
          reject(new Error("The docs were generated again. Reload the page."));
        };
        document.head.append(script);
      }));
    }
    return docs.loading.get(source);
  };
  docs.viewer = async (name) => {
    for (const source of docs.data.viewers[name]) await docs.load(source);
  };
  docs.page = async (node) => {
    await docs.load(node.script);
    return docs.pages.get(node.id);
  };

  // Create an element. A name that isn't a property of it becomes an attribute. Children that are null are skipped.
  docs.make = (name, properties = {}, ...inside) => {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(properties)) {
      if (key === "class") element.className = value;
      else if (key in element) element[key] = value;
      else element.setAttribute(key, value);
    }
    element.append(...inside.flat().filter((one) => one != null && one !== ""));
    return element;
  };
  docs.at = (id) => document.getElementById(id);
  docs.say = (text) => { docs.at("status").textContent = text; };

  const part = encodeURIComponent;
  docs.address = (node, section = "") => `#${node.kind}/${part(node.name)}${section && `/${part(section)}`}`;
  docs.columnAddress = (id, column) => `#column/${part(id)}/${part(column)}`;
  docs.link = (node) => docs.make("a", { href: docs.address(node), class: `node ${node.kind}` }, node.name);

  // A column `*` stands for the rows of its node.
  docs.label = (id, column, field = "") => {
    const name = docs.ids.has(id) ? docs.ids.get(id).name : id;
    return column === "*" ? `rows of ${name}` : `${name}.${column}${field}`;
  };
  docs.columnLink = (id, column, field = "") =>
    docs.make("a", { href: docs.columnAddress(id, column) }, docs.label(id, column, field));

  docs.count = (number, noun) => `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
  docs.number = (value) => (value == null ? "–" : value.toLocaleString("en"));
  docs.code = (text) => docs.make("code", {}, text);
  docs.listed = (items, separator = ", ") => items.flatMap((one, place) => (place ? [separator, one] : [one]));

  // A table with a caption, which scrolls by itself. A row is a list of cells; a cell is a list, an element or a text.
  docs.table = (caption, heads, rows, css = "") => {
    const { make } = docs;
    const cell = (value, place) => make(place ? "td" : "th", place ? {} : { scope: "row" }, ...[value].flat());
    const box = make("div", { class: "wide", tabIndex: 0, role: "group", "aria-label": caption },
      make("table", { class: css },
        make("caption", { class: "hidden" }, caption),
        make("thead", {}, make("tr", {}, heads.map((head) => make("th", { scope: "col" }, head)))),
        make("tbody", {}, rows.map((row) => make("tr", {}, row.map(cell))))));
    return box;
  };
  docs.facts = (pairs) => docs.make("dl", {}, pairs.filter(([, value]) => value != null && value !== "" &&
    !(Array.isArray(value) && !value.length)).map(([name, value]) =>
    docs.make("div", {}, docs.make("dt", {}, name), docs.make("dd", {}, ...[value].flat()))));
  docs.section = (id, title, ...inside) =>
    docs.make("section", {},
      docs.make("h2", { id: `h-${id}`, tabIndex: -1 }, title), ...inside);
  docs.badge = (css, word) => docs.make("span", { class: `badge ${css}` }, word);
  return docs;
})();
