// Draws the charts in the page, in the page's colours. The libraries define `vegaEmbed`.
const charts = JSON.parse(document.getElementById("charts").textContent);
const dark = matchMedia("(prefers-color-scheme: dark)");
const views = new Map();
let drawing = 0;

function colours() {
  const style = getComputedStyle(document.documentElement);
  const [ink, faint, line] = ["--ink", "--faint", "--line"].map((name) => style.getPropertyValue(name).trim());
  const font = getComputedStyle(document.body).fontFamily;
  return {
    background: "transparent",
    font,
    view: { stroke: null },
    axis: {
      labelColor: faint,
      titleColor: faint,
      titleFontWeight: "normal",
      domainColor: line,
      tickColor: line,
      gridColor: line,
      gridOpacity: 0.6,
      labelFontSize: 12,
      titleFontSize: 12,
    },
    axisY: { titleAngle: 0, titleAlign: "left", titleAnchor: "end", titleX: 0, titleY: -10 },
    mark: { color: ink },
  };
}

async function draw() {
  const mine = ++drawing;
  const scheme = dark.matches ? "dark" : "light";
  const config = colours();
  for (const [name, spec] of Object.entries(charts)) {
    // Long series take time. This lets the browser scroll between two charts.
    await new Promise((resolve) => setTimeout(resolve));
    if (mine !== drawing) return;
    views.get(name)?.finalize();
    const view = await vegaEmbed(document.getElementById(name), spec, {
      mode: "vega-lite",
      // The renderer is a canvas, because some charts have thousands of dots. `ast` avoids eval, which the
      // policy forbids.
      renderer: "canvas",
      ast: true,
      actions: false,
      config,
      tooltip: { theme: scheme },
    });
    views.set(name, view);
  }
  document.documentElement.dataset.charts = scheme;
}

dark.addEventListener("change", draw);
draw();
