"use strict";
// Replaces each figure's picture by a chart when it scrolls into view, and filters by name.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const places = data.labels.map((_, place) => place);
  const drawn = new Map();
  const HEIGHT = 150;
  document.documentElement.classList.add("charts");

  const amount = (value, unit) => {
    if (value == null) return "–";
    if (unit === "share") return +(100 * value).toFixed(2) + " %";
    if (unit === "seconds") {
      const size = Math.abs(value);
      if (size >= 129600) return +(value / 86400).toFixed(1) + " d";
      if (size >= 5400) return +(value / 3600).toFixed(1) + " h";
      if (size >= 90) return +(value / 60).toFixed(1) + " min";
      return +value.toFixed(2) + " s";
    }
    return value.toLocaleString("en", { maximumFractionDigits: 2 });
  };
  // Steps of time that people count in.
  const STEPS = { seconds: [0.001, 0.01, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600,
    7200, 10800, 21600, 43200, 86400, 172800, 604800, 2592000, 31536000, 315360000] };
  // Places whose neighbours have no value: no line leads there, so each gets a dot.
  const alone = (values) => places.filter((at) => values[at] != null && values[at - 1] == null && values[at + 1] == null);
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  function options(line, width) {
    const { unit } = line;
    const dim = colour("--dim"), ink = colour("--ink"), bad = colour("--bad");
    const label = (u, value) => amount(value, unit);
    const grid = { stroke: colour("--line"), width: 1 };
    const found = {
      width, height: HEIGHT, padding: [8, 30, 0, 0],
      cursor: { sync: { key: "ticks" }, y: false },
      scales: { x: { time: false }, y: { range: (u, low, high) => [Math.min(0, low ?? 0), (high || 1) * 1.05] } },
      axes: [
        { stroke: dim, grid: { show: false }, ticks: grid, space: 90, size: 34, incrs: [1, 2, 3, 6, 12, 24, 48, 96, 168],
          values: (u, splits) => splits.map((place) => data.axis[place] ?? "") },
        { stroke: dim, grid, ticks: grid, size: 70, values: (u, splits) => splits.map((value) => amount(value, unit)),
          ...(STEPS[unit] ? { incrs: STEPS[unit] } : {}) },
      ],
      series: [
        { label: "tick", value: (u, place) => data.labels[place] ?? "–" },
        { label: "value", stroke: ink, width: 1.5, value: label,
          points: { show: true, size: 5, fill: ink, filter: () => alone(line.value) } },
      ],
    };
    const columns = [places, line.value];
    if (line.low.length || line.high.length) {
      const none = places.map(() => null);
      const edge = { stroke: "transparent", points: { show: false }, value: label };
      found.series.push({ ...edge, label: "at most" }, { ...edge, label: "at least" });
      columns.push(line.high.length ? line.high : none, line.low.length ? line.low : places.map(() => 0));
      if (line.high.length) found.bands = [{ series: [2, 3], fill: colour("--band") }];
    }
    if (line.unusual.length) {
      const those = new Set(line.unusual);
      found.series.push({ label: "unusual", stroke: bad, paths: () => null, value: label,
        points: { show: true, size: 9, fill: bad, stroke: bad } });
      columns.push(line.value.map((value, place) => (those.has(place) ? value : null)));
    }
    return [found, columns];
  }

  function draw(figure) {
    const plot = figure.querySelector(".plot");
    const line = data.lines[Number(figure.dataset.line)];
    const width = plot.clientWidth;
    if (!width || !line) return;
    drawn.get(figure)?.destroy();
    plot.textContent = "";
    drawn.set(figure, new uPlot(...options(line, width), plot));
  }

  const figures = [...document.querySelectorAll("figure[data-line]")];
  const seen = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) {
      if (isIntersecting && !drawn.has(target)) draw(target);
    }
  }, { rootMargin: "300px" });
  figures.forEach((figure) => seen.observe(figure));

  const again = () => drawn.forEach((_, figure) => draw(figure));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
  let width = innerWidth;
  addEventListener("resize", () => {
    if (width !== innerWidth) again();
    width = innerWidth;
  });

  const search = document.querySelector(".search");
  search.hidden = false;
  search.querySelector("input").addEventListener("input", ({ target }) => {
    const text = target.value.trim().toLowerCase();
    for (const found of document.querySelectorAll("[data-find]")) found.hidden = !found.dataset.find.includes(text);
    if (text) document.querySelectorAll("details").forEach((details) => (details.open = true));
  });
})();
