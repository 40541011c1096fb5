// The charts: ends per second, histograms of waits and lateness, stalls of the event loop.

import { byId, duration, element, fill, number, plural, roundDuration, svgElement, write } from "./elements.js";

const HEIGHT = 148;
// The height below the axis, for its labels.
const FOOT = 18;
// The width of a label of the axis.
const LABEL = 72;

// The width of each chart by its id. To ask the page for a width is to have it lay everything out at once.
const widths = new Map();

// By the id of a chart: how many columns it has, their texts, and the one that the viewer points at.
const charts = new Map();

const sum = (counts) => counts.reduce((total, count) => total + count, 0);

// The round number at the top of an axis that has to show `value`.
function roundUp(value) {
  const power = 10 ** Math.floor(Math.log10(Math.max(value, 1e-9)));
  return [1, 1.5, 2, 3, 4, 5, 6, 8, 10].map((step) => step * power).find((step) => step >= value * 0.999999);
}

// Draw columns of stacked bars. `columns` has for each the pairs of a class and a value; `texts` says each in words. At
// column `mark`, if any, is a line.
function drawChart(id, drawn) {
  const { label, columns, texts, least, top, axisLabels, mark = null } = drawn;
  const width = Math.max(200, widths.get(id) ?? 0);
  const floor = HEIGHT - FOOT;
  const step = width / columns.length;
  const wide = Math.max(1, step - 1);
  const highest = roundUp(Math.max(least, ...columns.map((parts) => sum(parts.map(([, value]) => value)))));
  // The bars of one class are one path: a page that is open all day draws hundreds of bars each second.
  const bars = new Map();
  columns.forEach((parts, column) => {
    let y = floor;
    for (const [name, value] of parts) {
      const tall = value && Math.max(1, (value / highest) * (floor - 12));
      y -= tall;
      bars.set(name, (bars.get(name) ?? "") + (tall ? `M${column * step + 0.5} ${y}h${wide}v${tall}h${-wide}z` : ""));
    }
  });
  fill(byId(id), [
    svgElement(
      "svg", { viewBox: `0 0 ${width} ${HEIGHT}`, height: HEIGHT, role: "img", "aria-label": label },
      svgElement("path", { class: "axis", d: `M0 ${floor + 0.5}H${width}M0 12.5H${width}` }),
      svgElement("text", { x: 0, y: 9 }, top(highest)),
      ...[...bars].map(([name, d]) => svgElement("path", { class: `bar ${name}`, d })),
      ...axisLabels(width, step),
      ...(mark === null ? [] : [svgElement("path", { class: "restarted", d: `M${mark * step} 2V${floor}` }, svgElement("title", {}, "The process was restarted here."))]),
      svgElement("rect", { class: "pointed", y: 12, width: step, height: floor - 12, visibility: "hidden" }),
    ),
  ]);
  charts.set(id, { pointed: null, ...charts.get(id), drawn, texts, step });
  // A screen reader reads what the viewer points at, but not each update of it.
  byId(`${id}-value`).setAttribute("aria-live", "off");
  showPointed(id);
}

// Mark the column that the viewer points at, and say it in words. It stays marked when the next snapshot comes.
function showPointed(id) {
  const { pointed, texts, step } = charts.get(id);
  const column = pointed === null ? null : Math.min(pointed, texts.length - 1);
  const bar = byId(id).querySelector(".pointed");
  bar.setAttribute("visibility", column === null ? "hidden" : "visible");
  bar.setAttribute("x", (column ?? 0) * step);
  write(`${id}-value`, column === null ? "" : texts[column]);
}

function point(id, column) {
  const chart = charts.get(id);
  if (!chart) return;
  chart.pointed = column === null ? null : Math.min(chart.texts.length - 1, Math.max(0, column));
  showPointed(id);
}

const observer = new ResizeObserver((entries) => {
  for (const { target: { id }, contentRect } of entries) {
    widths.set(id, Math.round(contentRect.width));
    if (charts.has(id)) drawChart(id, charts.get(id).drawn);
  }
});

for (const host of document.querySelectorAll(".chart")) {
  const { id } = host;
  observer.observe(host);
  host.addEventListener("pointermove", ({ clientX }) => {
    if (!charts.has(id)) return;
    const { left, width } = host.getBoundingClientRect();
    point(id, Math.floor(((clientX - left) / width) * charts.get(id).texts.length));
  });
  host.addEventListener("pointerleave", () => point(id, null));
  host.addEventListener("blur", () => point(id, null));
  host.addEventListener("keydown", (event) => {
    const direction = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!direction || !charts.has(id)) return;
    event.preventDefault();
    const { pointed, texts } = charts.get(id);
    byId(`${id}-value`).setAttribute("aria-live", "polite");
    point(id, pointed === null ? texts.length - 1 : pointed + direction);
  });
}

// The axis of the last seconds. `end` is "now", or the time of the last data.
const secondLabels = (seconds, end) => (width) => [
  svgElement("text", { x: 0, y: HEIGHT - 4 }, end === "now" ? `${seconds} s ago` : `${seconds} s earlier`),
  svgElement("text", { x: width, y: HEIGHT - 4, "text-anchor": "end" }, end),
];

const secondsAgo = (seconds, second) => plural(seconds - second, "second") + " ago";

export function showRates({ ended, checks, tried }, { end, mark }) {
  const outcomes = Object.keys(ended);
  const inWords = (second) => outcomes.map((outcome) => `${number.format(ended[outcome].at(second))} ${outcome}`).join(", ");
  const sums = checks.map((_, second) => sum(outcomes.map((outcome) => ended[outcome][second])));
  fill(byId("rates-legend"), outcomes.map((outcome) => (
    element("li", {}, element("i", { className: outcome }), `${outcome} `, element("b", {}, number.format(sum(ended[outcome]))))
  )).concat(element("li", {}, "in the last minute")));
  drawChart("rates", {
    label: `Operations that ended in the last second: ${inWords(-1)}. In the busiest second of the last minute ${number.format(Math.max(...sums))} ended.`,
    columns: sums.map((_, second) => outcomes.map((outcome) => [outcome, ended[outcome][second]])),
    texts: sums.map((_, second) => `${secondsAgo(sums.length, second)}: ${inWords(second)}; ${plural(checks[second], "check")}, ${number.format(tried[second])} tried`),
    least: 5,
    top: number.format,
    axisLabels: secondLabels(sums.length, end),
    mark,
  });
  fill(byId("checks"), [
    element("b", {}, number.format(checks.at(-1))), ` check${checks.at(-1) === 1 ? "" : "s"} of a key in the last second, `,
    element("b", {}, number.format(tried.at(-1))), ` operation${tried.at(-1) === 1 ? "" : "s"} tried`,
  ]);
}

// The quantiles of one histogram in words, such as "median 4 to 8 ms, 99th percentile 64 to 128 ms, of 1,234". A histogram
// knows between which bounds a quantile is, and no more.
function quantiles({ bounds, counts, median, percentile_99: percentile99 }) {
  const range = (quantile) => element("b", {}, inRange(bounds, quantile === null ? bounds.length : bounds.indexOf(quantile)));
  return ["median ", range(median), ", 99th percentile ", range(percentile99), `, of ${number.format(sum(counts))}`];
}

const inRange = (bounds, bucket) => bucket === 0 ? `up to ${roundDuration(bounds[0])}`
  : bucket === bounds.length ? `over ${roundDuration(bounds.at(-1))}`
  : `${roundDuration(bounds[bucket - 1])} to ${roundDuration(bounds[bucket])}`;

// Histograms with the same bounds, by the class of their bars, in one chart.
function drawHistograms(id, histograms, label) {
  const shown = Object.entries(histograms);
  const [[, { bounds }]] = shown;
  const totals = bounds.concat(0).map((_, bucket) => sum(shown.map(([, { counts }]) => counts[bucket])));
  const first = Math.max(0, totals.findIndex((count) => count) - 1);
  // At least ten buckets, so that a single bar does not fill the chart.
  const last = Math.min(totals.length - 1, Math.max(first + 9, totals.findLastIndex((count) => count) + 1));
  const buckets = totals.map((_, bucket) => bucket).slice(first, last + 1);
  const inWords = (bucket) => shown.filter(([, { counts }]) => counts[bucket])
    .map(([name, { counts }]) => `${number.format(counts[bucket])} ${name}`.trim()).join(", ") || "none";
  drawChart(id, {
    label,
    columns: buckets.map((bucket) => shown.map(([name, { counts }]) => [name, counts[bucket]])),
    texts: buckets.map((bucket) => `${inRange(bounds, bucket)}: ${inWords(bucket)}`),
    least: 1,
    top: number.format,
    axisLabels: (width, step) => {
      const every = Math.ceil(LABEL / step);
      return buckets.flatMap((bucket, index) => {
        const x = (index + 1) * step;
        if ((index + 1) % every || x > width - LABEL / 2 || bucket >= bounds.length) return [];
        return [svgElement("text", { x, y: HEIGHT - 4, "text-anchor": "middle" }, roundDuration(bounds[bucket]))];
      });
    },
  });
}

function showNothing(id, text) {
  fill(byId(`${id}-text`), [text]);
  byId(id).replaceChildren();
  write(`${id}-value`, "");
  charts.delete(id);
}

export function showWaits(waits) {
  const shown = Object.fromEntries(Object.entries(waits).filter(([, { counts }]) => sum(counts)));
  const outcomes = Object.keys(shown);
  byId("waits-list").hidden = !outcomes.length;
  if (!outcomes.length) {
    showNothing("waits", "No operation ended in the last minute.");
    return;
  }
  fill(byId("waits-text"), ["How long the operations had waited, by outcome:"]);
  fill(byId("waits-list"), outcomes.map((outcome) => (
    element("li", { data: { key: outcome } }, element("i", { className: outcome }), `${outcome}: `, ...quantiles(shown[outcome]))
  )));
  drawHistograms("waits", shown, [...byId("waits-list").children].map((each) => each.textContent).join("; "));
}

export function showLateness(lateness) {
  if (!sum(lateness.counts)) {
    showNothing("lateness", "No operation expired in the last minute.");
    return;
  }
  fill(byId("lateness-text"), ["Expired: ", ...quantiles(lateness)]);
  drawHistograms("lateness", { "": lateness }, `Lateness of operations that expired: ${byId("lateness-text").textContent}`);
}

export function showStalls(stalls, { end, mark }) {
  const measured = stalls.filter((stall) => stall !== null);
  const worst = Math.max(0, ...measured);
  fill(byId("stalls-text"), measured.length
    ? ["The event loop was up to ", element("b", {}, duration(worst)), ` late, in ${plural(measured.length, "measured second")} of the last minute`]
    : ["The event loop is measured only while this page is open."]);
  drawChart("stalls", {
    label: `The event loop was up to ${duration(worst)} late.`,
    columns: stalls.map((stall) => [["", stall]]),
    texts: stalls.map((stall, second) => `${secondsAgo(stalls.length, second)}: ${stall === null ? "not measured" : `${duration(stall)} late`}`),
    least: 0.01,
    top: roundDuration,
    axisLabels: secondLabels(stalls.length, end),
    mark,
  });
}
