"""The page: one HTML file that needs no other file and no network."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping, Sequence
from hashlib import sha256
from html import escape
from pathlib import Path
from typing import Any, Final

import vl_convert

from purgatory.pipeline.report import markup
from purgatory.pipeline.report.findings import Findings
from purgatory.pipeline.report.history import fan_out, history
from purgatory.pipeline.report.hot_keys import hot_keys
from purgatory.pipeline.report.markup import Section
from purgatory.pipeline.report.overview import compacted, overview
from purgatory.pipeline.report.timeouts import timeouts
from purgatory.pipeline.report.trade_off import wheel
from purgatory.pipeline.report.verdicts import headline, verdicts
from purgatory.pipeline.report.waits import waits

_HERE: Final = Path(__file__).parent
# The page's script uses this function of the libraries.
_EXPORTS: Final = "window.vegaEmbed = vegaEmbed;"
# The Vega-Lite of the page. With 6.4, a tooltip of a layer with `nearest` reads the mark in place of the row,
# and says "undefined".
_VEGA_LITE: Final = "6.1"
_LIBRARIES: Final = """\
/* Vega, Vega-Lite and Vega-Embed, (c) University of Washington Interactive Data Lab and contributors,
   BSD-3-Clause: https://github.com/vega */
"""


def sections(findings: Findings) -> list[Section]:
    """The sections of the page, in order."""
    parts = (verdicts, overview, waits, timeouts, history, hot_keys, fan_out, wheel, compacted)
    return [part(findings) for part in parts]


def page(findings: Findings, tables: Sequence[str] = ()) -> str:
    """The page as HTML. `tables` names the tables that are in files beside the page.

    Each call bundles the libraries of the charts, which takes seconds. The page loads nothing, and runs only
    the script whose hash is in its policy.
    """
    body, title = sections(findings), headline(findings)
    charts = {figure.name: figure.spec for section in body for figure in section.charts}
    script = (
        f"{_LIBRARIES}{vl_convert.javascript_bundle(_EXPORTS, _VEGA_LITE)}\n{(_HERE / 'page.js').read_text()}"
    )
    digest = b64encode(sha256(script.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    links = "\n".join(f'<a href="#{section.name}">{escape(section.title)}</a>' for section in body)
    return f"""\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(title)}</title>
<style>
{(_HERE / "page.css").read_text()}</style>
</head>
<body>
<header>
<h1>{escape(title)}</h1>
<p>Dataset {escape(findings.dataset)}, report made on {findings.made:%Y-%m-%d at %H:%M} UTC</p>
</header>
<nav aria-label="Parts of the page">
{links}
</nav>
<main>
<noscript>{markup.paragraph("The charts need JavaScript. The tables do not.", "warning")}</noscript>
{"".join(map(markup.section, body))}
</main>
<footer>{_files(tables)}</footer>
<script type="application/json" id="charts">{_embedded(charts)}</script>
<script>{script}</script>
</body>
</html>
"""


def _files(tables: Sequence[str]) -> str:
    links = ", ".join(
        f'{escape(name)} (<a href="tables/{name}.parquet">Parquet</a>, <a href="tables/{name}.json">JSON</a>)'
        for name in tables
    )
    return f"<p>The tables behind this page: {links}</p>" if links else ""


def _embedded(charts: Mapping[str, Any]) -> str:
    """JSON in which no text can end the script element or begin a comment."""
    text = json.dumps(charts, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
