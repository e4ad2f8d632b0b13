// The chart of a trend, drawn by uPlot in the page's colours.

const HEIGHT = 190;
// Maximum number of bars; a chart with more values is a step line.
const MOST_BARS = 48;
const HOURS = [1, 2, 3, 6, 12, 24, 48].map((hours) => 3600 * hours);

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

const FONT = "12px system-ui, sans-serif";
const pen = document.createElement("canvas").getContext("2d");
pen.font = FONT;
const wide = (text) => Math.ceil(pen.measureText(text).width);

// Return the labels, with "" for each one that the chart's edge would cut.
function whole(u, splits, write, past) {
  const room = u.bbox.width / devicePixelRatio + past;
  return splits.map((at) => {
    const text = write(at);
    return u.valToPos(at, "x") + wide(text) / 2 > room ? "" : text;
  });
}

// Return uPlot's options. `drawn` has lists by hour: `at` (ms), `now`, `running` (bool) and `before`. It also has the
// formats of values and times.
function options(drawn, width, point) {
  const { paths } = uPlot;
  const many = drawn.at.length > MOST_BARS;
  const shape = many ? paths.stepped({ align: 1 }) : paths.bars({ size: [0.75, 60], align: 1, radius: 0.15 });
  const [ink, soft, dim, line] = ["--ink", "--ink-soft", "--dim", "--line"].map(colour);
  const font = FONT;
  const write = many ? drawn.times.weekday : drawn.times.clock;
  // Pixels by which the last label extends beyond its bar.
  const past = Math.max(8, Math.ceil(wide(write(drawn.at.at(-1))) / 2) - 4);
  const filled = { paths: shape, points: { show: false }, width: many ? 1.5 : 0 };
  return {
    width, height: HEIGHT, padding: [10, past, 0, 0],
    legend: { show: false },
    cursor: { y: false, points: { show: false }, drag: { x: false, y: false } },
    tzDate: (seconds) => uPlot.tzDate(new Date(1000 * seconds), drawn.times.zone),
    scales: { x: { range: (u, low, high) => [low, high + 3600] }, y: { range: (u, low, high) => [low < 0 ? low * 1.1 : 0, high > 0 ? high * 1.1 : low < 0 ? 0 : 1.1] } },
    axes: [
      {
        stroke: dim, font, grid: { show: false }, ticks: { stroke: line, width: 1, size: 4 }, space: many ? 44 : 58, size: 30, incrs: HOURS,
        values: (u, splits) => whole(u, splits, (at) => write(1000 * at), past),
      },
      {
        stroke: dim, font, grid: { stroke: line, width: 1 }, ticks: { show: false }, space: 36, incrs: drawn.steps,
        size: (u, values) => 14 + Math.max(7, ...(values ?? []).map(wide)),
        values: (u, splits) => splits.map(drawn.short),
      },
    ],
    series: [
      {},
      { ...filled, stroke: ink, fill: many ? soft : ink },
      { ...filled, stroke: ink, fill: soft, width: 1 },
      { paths: paths.stepped({ align: 1 }), points: { show: false }, stroke: dim, width: 1.5, dash: [4, 4] },
    ],
    hooks: { setCursor: [(u) => point(u.cursor.left >= 0 ? u.cursor.idx : null)] },
  };
}

// Return a function that draws a chart in an element. The chart follows the element's width and the color scheme.
export function chart(place, point) {
  let plot = null;
  let drawn = null;
  let width = 0;

  function draw() {
    plot?.destroy();
    plot = null;
    width = place.clientWidth;
    if (!drawn || !width) return;
    const only = (running) => drawn.now.map((value, hour) => (drawn.running[hour] === running ? value : null));
    const columns = [drawn.at.map((at) => at / 1000), only(false), only(true), drawn.before];
    plot = new uPlot(options(drawn, width, point), columns, place);
  }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  new ResizeObserver(() => width !== place.clientWidth && draw()).observe(place);
  return (next) => {
    drawn = next;
    draw();
  };
}
