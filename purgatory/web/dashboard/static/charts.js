// The charts: ends per second, histograms of waits and lateness, stalls of the event loop.

import { byId, duration, element, number, roundDuration, svgElement } from "./elements.js";

const HEIGHT = 148;
// The height below the axis, for its labels.
const FOOT = 18;
// The width of a label of the axis.
const LABEL = 56;

// The round number at the top of an axis that has to show `value`.
function roundUp(value) {
  const power = 10 ** Math.floor(Math.log10(Math.max(value, 1e-9)));
  return [1, 1.5, 2, 3, 4, 5, 6, 8, 10].map((step) => step * power).find((step) => step >= value * 0.999999);
}

function drawChart(id, label, highest, text, bars, axisLabels) {
  const host = byId(id);
  const width = Math.max(200, host.clientWidth);
  const floor = HEIGHT - FOOT;
  host.replaceChildren(
    svgElement(
      "svg",
      { viewBox: `0 0 ${width} ${HEIGHT}`, height: HEIGHT, role: "img", "aria-label": label },
      svgElement("path", { class: "axis", d: `M0 ${floor + 0.5}H${width}M0 12.5H${width}` }),
      svgElement("text", { x: 0, y: 9 }, text(highest)),
      ...bars(width, (share) => share * (floor - 12), floor),
      ...axisLabels(width),
    ),
  );
}

const secondLabels = (seconds) => (width) => [
  svgElement("text", { x: 0, y: HEIGHT - 4 }, `${seconds} s ago`),
  svgElement("text", { x: width, y: HEIGHT - 4, "text-anchor": "end" }, "now"),
];

export function showRates({ ended, checks, tried }) {
  const outcomes = Object.keys(ended);
  const last = (outcome) => ended[outcome].at(-1);
  const sums = checks.map((_, second) => outcomes.reduce((sum, outcome) => sum + ended[outcome][second], 0));
  const highest = roundUp(Math.max(5, ...sums));
  byId("rates-legend").replaceChildren(
    ...outcomes.map((outcome) =>
      element("li", {}, element("i", { className: outcome }), `${outcome} `, element("b", {}, number.format(last(outcome)))),
    ),
  );
  const words = outcomes.map((outcome) => `${number.format(last(outcome))} ${outcome}`).join(", ");
  const label = `Operations that ended in the last second: ${words}. In the busiest second of the last minute ${number.format(Math.max(...sums))} ended.`;
  drawChart("rates", label, highest, number.format, (width, height, floor) => {
    const step = width / sums.length;
    const bars = [];
    sums.forEach((_, second) => {
      let y = floor;
      for (const outcome of outcomes) {
        const tall = height(ended[outcome][second] / highest);
        y -= tall;
        if (tall) bars.push(svgElement("rect", { class: `bar ${outcome}`, x: second * step + 0.5, y, width: step - 1, height: tall }));
      }
    });
    return bars;
  }, secondLabels(sums.length));
  byId("checks").replaceChildren(
    element("b", {}, number.format(checks.at(-1))), ` check${checks.at(-1) === 1 ? "" : "s"} of a key in the last second, `,
    element("b", {}, number.format(tried.at(-1))), ` operation${tried.at(-1) === 1 ? "" : "s"} tried`,
  );
}

export function showHistogram(id, { bounds, counts, median, percentile_99: percentile99 }, verb) {
  const total = counts.reduce((sum, count) => sum + count, 0);
  if (!total) {
    byId(`${id}-text`).textContent = `No operation ${verb} in the last minute.`;
    byId(id).replaceChildren();
    return;
  }
  const longest = roundDuration(bounds.at(-1));
  const within = (quantile) => quantile === null ? ["over ", longest] : ["within ", roundDuration(quantile)];
  const [half, most] = [within(median), within(percentile99)];
  byId(`${id}-text`).replaceChildren(
    `Half ${half[0]}`, element("b", {}, half[1]), `, 99 % ${most[0]}`, element("b", {}, most[1]),
    `, of ${number.format(total)}`,
  );
  const first = Math.max(0, counts.findIndex((count) => count) - 1);
  // At least ten buckets, so that a single bar does not fill the chart.
  const last = Math.min(counts.length - 1, Math.max(first + 9, counts.findLastIndex((count) => count) + 1));
  const shown = counts.slice(first, last + 1);
  const highest = roundUp(Math.max(...shown));
  const label = `Half ${half.join("")}, 99 % ${most.join("")}, of ${number.format(total)} that ${verb} in the last minute.`;
  const bucket = (index) => index < bounds.length ? `up to ${roundDuration(bounds[index])}` : `over ${longest}`;
  drawChart(id, label, highest, number.format, (width, height, floor) => {
    const step = width / shown.length;
    return shown.map((count, index) => {
      const tall = count && Math.max(1, height(count / highest));
      return svgElement("rect", { class: "bar", x: index * step + 0.5, y: floor - tall, width: step - 1, height: tall },
        svgElement("title", {}, `${bucket(first + index)}: ${number.format(count)}`));
    });
  }, (width) => {
    const step = width / shown.length;
    const every = Math.ceil(LABEL / step);
    return shown.flatMap((_, index) => {
      const x = (index + 1) * step;
      if ((index + 1) % every || x > width - LABEL / 2 || first + index >= bounds.length) return [];
      return [svgElement("text", { x, y: HEIGHT - 4, "text-anchor": "middle" }, roundDuration(bounds[first + index]))];
    });
  });
}

export function showStalls(stalls) {
  const measured = stalls.filter((stall) => stall !== null);
  const worst = Math.max(0, ...measured);
  byId("stalls-text").replaceChildren(
    ...(measured.length
      ? ["The event loop was up to ", element("b", {}, duration(worst)), ` late, in ${measured.length} measured second${measured.length === 1 ? "" : "s"} of the last minute`]
      : ["The event loop is measured only while this page is open."]),
  );
  const highest = roundUp(Math.max(0.01, worst));
  drawChart("stalls", `The event loop was up to ${duration(worst)} late.`, highest, roundDuration, (width, height, floor) => {
    const step = width / stalls.length;
    return stalls.flatMap((stall, second) => {
      if (stall === null) return [];
      const tall = Math.max(1, height(stall / highest));
      return [svgElement("rect", { class: "bar", x: second * step + 0.5, y: floor - tall, width: step - 1, height: tall })];
    });
  }, secondLabels(stalls.length));
}
