"""What docs/ has for Prometheus and Grafana, and the names of the metrics: by promtool's own rules."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from purgatory.metrics import PurgatoryCollector
from purgatory.testing import ManualClock
from tests.operations import Gate
from tests.shown import Losses, Shown

DOCS = Path(__file__).parent.parent / "docs"
DASHBOARD = json.loads((DOCS / "grafana.json").read_text())
PAGE = (DOCS / "metrics.md").read_text()


def promtool(*arguments: str, text: str = "") -> str:
    """What it says to that, and that it has no fault to find."""
    program = shutil.which("promtool")
    if program is None:
        if os.environ.get("CI"):
            pytest.fail("promtool is missing: install Debian's package prometheus")
        pytest.skip("promtool is not installed (Debian's package prometheus has it)")
    done = subprocess.run(
        [program, *arguments],
        input=text,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def everything() -> CollectorRegistry:
    """All metrics there are, of a purgatory whose name needs escaping."""
    collector = PurgatoryCollector(journal=Losses())
    purgatory = ManualClock().purgatory('<"polls"\\\n>')
    collector.add(purgatory)
    purgatory.try_complete_else_watch(Gate(opened=True), ["a"])
    return Shown(collector).registry


def test_names_units_and_help_are_as_prometheus_wants_them() -> None:
    assert promtool("check", "metrics", text=generate_latest(everything()).decode()) == ""


def test_the_example_configuration_is_one() -> None:
    assert "SUCCESS" in promtool("check", "config", str(DOCS / "prometheus.yml"))


def expressions(panels: list[dict[str, Any]]) -> Iterator[str]:
    for panel in panels:
        for target in panel["targets"]:
            yield target["expr"]


def test_the_dashboard_asks_for_what_there_is_and_for_all_of_it() -> None:
    there = {sample.name for metric in everything().collect() for sample in metric.samples}
    asked = {name for text in expressions(DASHBOARD["panels"]) for name in re.findall(r"purgatory_\w+", text)}
    variables = {
        name
        for variable in DASHBOARD["templating"]["list"]
        for name in re.findall(r"purgatory_\w+", variable.get("definition", ""))
    }
    assert asked | variables <= there
    # Sums and counts are in the buckets.
    assert asked == {name for name in there if not name.endswith(("_sum", "_count"))}
    outcomes = {
        found for text in expressions(DASHBOARD["panels"]) for found in re.findall(r'outcome="(\w+)"', text)
    }
    assert outcomes <= {"completed", "expired", "cancelled", "failed"}


def test_the_dashboards_questions_can_be_asked(tmp_path: Path) -> None:
    texts = expressions(DASHBOARD["panels"])
    assert_can_be_asked([re.sub(r"\$__(rate_interval|range)", "5m", text) for text in texts], tmp_path)


def assert_can_be_asked(questions: Sequence[str], directory: Path) -> None:
    rules = [{"record": f"asked:{number}", "expr": text} for number, text in enumerate(questions)]
    # What is JSON is YAML.
    file = directory / "rules.yml"
    file.write_text(json.dumps({"groups": [{"name": "asked", "rules": rules}]}))
    assert f"{len(rules)} rules found" in promtool("check", "rules", str(file))


def test_the_dashboards_panels_are_told_apart_and_do_not_overlap() -> None:
    panels = DASHBOARD["panels"]
    for what in ("id", "gridPos"):
        assert len({json.dumps(panel[what]) for panel in panels}) == len(panels)
    cells = [
        (x, y)
        for place in (panel["gridPos"] for panel in panels)
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert len(cells) == len(set(cells))
    assert max(x for x, _ in cells) < 24
    defined = {variable["name"] for variable in DASHBOARD["templating"]["list"]}
    used = set(re.findall(r"\$\{?([a-z]+)", json.dumps(panels)))
    assert used == defined


def test_the_page_names_every_metric_with_its_type_and_labels() -> None:
    rows = re.findall(r"^\| `(purgatory_\w+)` \| (\w+) \| (.+?) \|", PAGE, flags=re.MULTILINE)
    shown = {
        (
            metric.name + ("_total" if metric.type == "counter" else ""),
            metric.type,
            ", ".join(f"`{label}`" for label in metric.samples[0].labels if label != "le"),
        )
        for metric in everything().collect()
    }
    assert set(rows) == shown


def test_the_pages_alerts_can_be_asked(tmp_path: Path) -> None:
    [block] = re.findall(r"```promql\n(.*?)```", PAGE, flags=re.DOTALL)
    alerts = block.split("\n\n")
    assert len(alerts) == 4
    assert_can_be_asked(alerts, tmp_path)
