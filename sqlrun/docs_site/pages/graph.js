// The graph: all nodes, or those around one. The viewer draws; places come from the index. Keys move along the edges.
"use strict";

(() => {
  const docs = window.sqlrunDocs;
  const { make, at } = docs;
  const GAP = { x: 50, y: 40, fold: 20 };
  // A larger graph is drawn with plain lines, and without them while it moves.
  const LARGE = 300;
  let view = null;

  docs.leaveGraph = () => {
    if (view !== null) view.destroy();
    view = null;
  };

  // Return the nodes at most `steps` edges above or below a node, as a set.
  function around(node, steps) {
    const found = new Set([node]);
    for (const next of [(one) => one.reads, (one) => one.readers]) {
      let edge = [node];
      for (let step = 0; step < steps; step += 1) {
        edge = edge.flatMap(next).filter((one) => !found.has(one));
        edge.forEach((one) => found.add(one));
      }
    }
    return found;
  }

  const width = (node) => 24 + 7.4 * Math.min(node.name.length, 36);

  // Return the position of each node: columns side by side, each around one axis; on a narrow screen rows below each
  // other. A column that is much higher than the graph is wide is folded into several, whose nodes alternate, so that
  // neighbors stay near.
  function positions(nodes, isNarrow) {
    const columns = new Map();
    for (const node of nodes) {
      if (!columns.has(node.place[0])) columns.set(node.place[0], []);
      columns.get(node.place[0]).push(node);
    }
    const most = isNarrow ? Math.max(3, Math.ceil(Math.sqrt(nodes.length / 8))) : Math.max(24, Math.ceil(Math.sqrt(nodes.length * 6)));
    const found = new Map();
    let along = 0;
    for (const level of [...columns.keys()].sort((a, b) => a - b)) {
      const column = columns.get(level).sort((a, b) => a.place[1] - b.place[1]);
      const folds = Math.ceil(column.length / most);
      const wide = Math.max(...column.map(width));
      const [step, across] = isNarrow ? [GAP.y, wide + GAP.fold] : [wide + GAP.fold, GAP.y];
      column.forEach((node, place) => {
        const here = along + step / 2 + (place % folds) * step;
        const aside = (Math.floor(place / folds) - (Math.ceil(column.length / folds) - 1) / 2) * across;
        found.set(node, isNarrow ? { x: aside, y: here } : { x: here, y: aside });
      });
      along += folds * step + GAP.x + Math.min(300, column.length * 2);
    }
    return found;
  }

  // The viewer knows no variables of CSS.
  function colour(name) {
    const probe = make("span", {});
    probe.style.color = `var(--${name})`;
    document.body.append(probe);
    const found = getComputedStyle(probe).color;
    probe.remove();
    return found;
  }

  function style(large) {
    const kinds = ["model", "seed", "source", "exposure"].map((kind) => ({
      selector: `.${kind}`, style: { "background-color": colour(`fill-${kind}`), "border-color": colour(`edge-${kind}`) },
    }));
    return [
      { selector: "node", style: {
        label: "data(label)", shape: "round-rectangle", width: "data(width)", height: 26, color: colour("text"),
        "font-size": 12, "font-family": "system-ui, sans-serif", "text-valign": "center", "text-halign": "center",
        "border-width": 1.5, "min-zoomed-font-size": 5 } },
      ...kinds,
      { selector: "edge", style: {
        width: 1.2, "line-color": colour("dim"), opacity: 0.55, "curve-style": large ? "haystack" : "bezier",
        "target-arrow-shape": large ? "none" : "triangle", "target-arrow-color": colour("dim"), "arrow-scale": 0.8 } },
      { selector: ".faint", style: { opacity: 0.35 } },
      { selector: "edge.near", style: { "line-color": colour("link"), "target-arrow-color": colour("link"), opacity: 1, width: 2 } },
      { selector: "node.match", style: { "border-width": 4, "border-color": colour("alert") } },
      { selector: "node.here", style: { "border-width": 4, "border-color": colour("link") } },
    ];
  }

  function draw(box, nodes) {
    const placed = positions(nodes, narrow(box));
    const elements = nodes.map((node) => ({
      group: "nodes", classes: node.kind, position: placed.get(node),
      data: { id: `n${node.number}`, label: cut(node.name), width: width(node) },
    }));
    const inside = new Set(nodes);
    for (const node of nodes) {
      for (const reader of node.readers) {
        if (inside.has(reader)) {
          elements.push({ group: "edges", data: { id: `e${node.number}-${reader.number}`, source: `n${node.number}`, target: `n${reader.number}` } });
        }
      }
    }
    const large = nodes.length > LARGE;
    return window.cytoscape({
      container: box, elements, layout: { name: "preset", fit: true, padding: 24 }, style: style(large), minZoom: 0.02, maxZoom: 3,
      autoungrabify: true, boxSelectionEnabled: false, hideEdgesOnViewport: large, textureOnViewport: large, pixelRatio: large ? 1 : "auto",
    });
  }

  const narrow = (box) => box.clientWidth < box.clientHeight;
  const cut = (name) => (name.length <= 36 ? name : `${name.slice(0, 35)}…`);

  // Mark a node with its edges, and say what it is.
  function choose(state, node, { move = true } = {}) {
    state.here = node;
    const element = view.getElementById(`n${node.number}`);
    view.batch(() => {
      view.elements().removeClass("here near faint");
      view.elements().not(element.closedNeighborhood()).addClass("faint");
      element.addClass("here");
      element.connectedEdges().addClass("near");
    });
    if (move) {
      const zoom = Math.max(view.zoom(), 0.7);
      view.zoom({ level: zoom, position: element.position() });
      view.center(element);
    }
    at("graph-here").replaceChildren(docs.link(node),
      ` ${node.kind}, reads ${node.reads.length}, read by ${node.readers.length}. ${node.summary}`);
  }

  // The keys that lead to what a node reads, to its readers, and within its column.
  const KEYS = { wide: ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"], narrow: ["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight"] };

  function next(state, key) {
    const [back, forth, before] = KEYS[narrow(at("graph")) ? "narrow" : "wide"];
    const node = state.here;
    if (!node) return state.nodes.reduce((best, one) => (one.place[0] < best.place[0] || (one.place[0] === best.place[0] && one.place[1] < best.place[1]) ? one : best));
    const inside = new Set(state.nodes);
    if (key === back) return node.reads.find((one) => inside.has(one));
    if (key === forth) return node.readers.find((one) => inside.has(one));
    const column = state.nodes.filter((one) => one.place[0] === node.place[0]).sort((a, b) => a.place[1] - b.place[1]);
    return column[column.indexOf(node) + (key === before ? -1 : 1)];
  }

  function zoom(factor) {
    view.zoom({ level: view.zoom() * factor, renderedPosition: { x: view.width() / 2, y: view.height() / 2 } });
  }

  function keyed(state, event) {
    const zooms = { "+": 1.3, "=": 1.3, "-": 1 / 1.3 };
    if (event.key.startsWith("Arrow")) {
      const found = next(state, event.key);
      if (found) choose(state, found);
    } else if (event.key in zooms) zoom(zooms[event.key]);
    else if (event.key === "0") view.fit(undefined, 24);
    else if (event.key === "Enter" && state.here) location.hash = docs.address(state.here);
    else return;
    event.preventDefault();
  }

  // Mark the nodes whose name has a text, and show the first.
  function match(state, text) {
    const wanted = text.trim().toLowerCase();
    const found = wanted ? state.nodes.filter((node) => node.name.toLowerCase().includes(wanted)) : [];
    view.batch(() => {
      view.elements().removeClass("match");
      found.forEach((node) => view.getElementById(`n${node.number}`).addClass("match"));
    });
    docs.say(wanted ? docs.count(found.length, "match").replace("matchs", "matches") : "");
    return found;
  }

  function tools(state, node, steps) {
    const button = (label, text, act) => make("button", { type: "button", "aria-label": label, title: label, onclick: act }, text);
    const finder = make("input", { type: "search", id: "graph-find", placeholder: "Find in the graph", "aria-label": "Find in the graph", autocomplete: "off" });
    finder.addEventListener("input", () => match(state, finder.value));
    finder.addEventListener("keydown", (event) => {
      const found = event.key === "Enter" ? match(state, finder.value) : [];
      if (found.length) choose(state, found[(found.indexOf(state.here) + 1) % found.length]);
    });
    const reach = make("select", { "aria-label": "Steps around the node", onchange: () => {
      location.hash = reach.value ? `#graph/${encodeURIComponent(node.id)}/${reach.value}` : "#graph";
    } }, [1, 2, 3, 5].map((each) => make("option", { value: String(each) }, docs.count(each, "step"))),
    make("option", { value: "" }, "whole graph"));
    if (node) reach.value = String(steps);
    return make("div", { class: "tools", role: "group", "aria-label": "Graph tools" }, finder,
      button("Zoom in", "+", () => zoom(1.3)), button("Zoom out", "−", () => zoom(1 / 1.3)),
      button("Fit the graph", "Fit", () => view.fit(undefined, 24)), node ? make("label", {}, "Around it: ", reach) : null);
  }

  const KINDS = ["model", "seed", "source", "exposure"];

  docs.showGraph = async (node, steps) => {
    await docs.viewer("graph");
    const wanted = node ? around(node, steps) : new Set(docs.data.nodes);
    const state = { nodes: docs.data.nodes.filter((one) => one.place && wanted.has(one)), here: null };
    const box = make("div", { id: "graph", tabIndex: 0, role: "application", "aria-label":
      "Graph. Arrow keys go to a neighbor, plus and minus zoom, 0 fits the graph, Enter opens the node.", "aria-describedby": "graph-here" });
    box.addEventListener("keydown", (event) => keyed(state, event));
    const parts = [
      make("h1", { tabIndex: -1 }, node ? `Graph around ${node.name}` : "Graph"),
      tools(state, node, steps),
      box,
      make("p", { id: "graph-here", "aria-live": "polite" }, `${docs.count(state.nodes.length, "node")}. Choose one, or use the arrow keys.`),
      make("p", { class: "key" }, KINDS.map((kind) => make("span", { class: `key-${kind}` }, kind))),
      make("details", {}, make("summary", {}, "The graph as a table"), docs.table("The graph", ["Node", "Kind", "Reads", "Read by"],
        state.nodes.map((one) => [docs.link(one), one.kind, docs.listed(one.reads.map((each) => each.name)).join("") || "–",
          docs.listed(one.readers.map((each) => each.name)).join("") || "–"]))),
    ];
    const shown = () => {
      view = draw(box, state.nodes);
      view.on("tap", "node", (event) => choose(state, docs.data.nodes[Number(event.target.id().slice(1))], { move: false }));
      view.on("dbltap", "node", (event) => {
        location.hash = docs.address(docs.data.nodes[Number(event.target.id().slice(1))]);
      });
      if (node) choose(state, node, { move: false });
      docs.redrawGraph = () => view?.style(style(state.nodes.length > LARGE));
      docs.graphView = () => view;
    };
    return { parts, shown };
  };
})();
