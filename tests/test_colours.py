"""The dashboard, the report and Grafana have the same colours for outcomes, and shorten no count."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from purgatory._figures.outcomes import OUTCOME_COLOURS
from purgatory.observer import OUTCOMES

ROOT = Path(__file__).parents[1]


def overrides(node: Any) -> Iterator[dict[str, Any]]:
    """All overrides of Grafana's panels."""
    if isinstance(node, dict):
        yield from node.get("overrides", ())
    children = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    for child in children:
        yield from overrides(child)


def contrast(one: str, other: str) -> float:
    """The contrast of two colours, by WCAG 2.2."""

    def luminance(colour: str) -> float:
        parts = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted(map(luminance, (one, other)))
    return (high + 0.05) / (low + 0.05)


def test_each_outcome_has_a_colour_that_can_be_seen_on_light_and_on_dark_pages() -> None:
    assert tuple(OUTCOME_COLOURS) == OUTCOMES
    assert len(set(OUTCOME_COLOURS.values())) == len(OUTCOMES)
    for colour in OUTCOME_COLOURS.values():
        assert contrast(colour, "#ffffff") >= 3
        assert contrast(colour, "#14181b") >= 3


def test_the_dashboard_has_these_colours() -> None:
    style = (ROOT / "purgatory/web/dashboard/static/dashboard.css").read_text()
    light = dict(re.findall(r"--(completed|expired|cancelled|failed): (#\w+);", style.partition("@media")[0]))
    assert light == OUTCOME_COLOURS


def test_grafana_has_these_colours() -> None:
    panels = json.loads((ROOT / "docs/grafana.json").read_text())
    coloured = {
        each["matcher"]["options"]: setting["value"]["fixedColor"]
        for each in overrides(panels)
        for setting in each["properties"]
        if setting["id"] == "color"
    }
    assert OUTCOME_COLOURS.items() <= coloured.items()


def test_grafana_shortens_no_count() -> None:
    panels = json.loads((ROOT / "docs/grafana.json").read_text())["panels"]
    units = {panel["fieldConfig"]["defaults"].get("unit") for panel in panels if "fieldConfig" in panel}
    assert units == {"locale", "suffix:/s", "s", "Bps", None}
