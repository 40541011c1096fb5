"""The files for Prometheus and Grafana in docs/, and the names of the metrics, checked by promtool."""

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

from purgatory._figures.event_loop import LOOP_FIGURES
from purgatory._figures.journal import LOST_ROWS
from purgatory._figures.messages import MESSAGE_FIGURES
from purgatory._figures.operations import FIGURES, LATENESS, WAITS
from purgatory._figures.relay import RELAY_FIGURES
from purgatory.metrics import DelayedCollector, PurgatoryCollector, RelayCollector
from purgatory.observer import OUTCOMES
from purgatory.testing import ManualClock
from tests.operations import Gate
from tests.scrape import FakeMessages, FakeRelay, LossyJournal, Scrape

DOCS = Path(__file__).parent.parent / "docs"
DASHBOARD = json.loads((DOCS / "grafana.json").read_text())
PAGE = (DOCS / "metrics.md").read_text()


def promtool(*arguments: str, text: str = "") -> str:
    """Run promtool, which has to find no error, and return its output."""
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


def all_metrics() -> CollectorRegistry:
    """The registry of collectors with all metrics, for a purgatory whose name needs escaping."""
    collector = PurgatoryCollector(journal=LossyJournal())
    purgatory = ManualClock().purgatory('<"polls"\\\n>', max_pending=100)
    collector.add(purgatory)
    purgatory.try_complete_else_watch(Gate(opened=True), ["a"])
    registry = Scrape(collector).registry
    registry.register(DelayedCollector(FakeMessages(purgatory)))
    registry.register(RelayCollector(FakeRelay(purgatory)))
    return registry


def test_names_units_and_help_follow_the_rules_of_prometheus() -> None:
    assert promtool("check", "metrics", text=generate_latest(all_metrics()).decode()) == ""


def test_the_example_configuration_is_valid() -> None:
    assert "SUCCESS" in promtool("check", "config", str(DOCS / "prometheus.yml"))


def expressions(panels: list[dict[str, Any]]) -> Iterator[str]:
    for panel in panels:
        for target in panel["targets"]:
            yield target["expr"]


def test_the_dashboard_queries_all_metrics_and_no_unknown_ones() -> None:
    exported = {sample.name for metric in all_metrics().collect() for sample in metric.samples}
    queried = {
        name for text in expressions(DASHBOARD["panels"]) for name in re.findall(r"purgatory_\w+", text)
    }
    variables = {
        name
        for variable in DASHBOARD["templating"]["list"]
        for name in re.findall(r"purgatory_\w+", variable.get("definition", ""))
    }
    assert queried | variables <= exported
    # The buckets contain sums and counts.
    assert queried == {name for name in exported if not name.endswith(("_sum", "_count"))}
    outcomes = {
        outcome
        for text in expressions(DASHBOARD["panels"])
        for outcome in re.findall(r'outcome="(\w+)"', text)
    }
    assert outcomes <= set(OUTCOMES)


def test_the_queries_of_the_dashboard_are_valid(tmp_path: Path) -> None:
    texts = expressions(DASHBOARD["panels"])
    assert_valid_queries([re.sub(r"\$__(rate_interval|range)", "5m", text) for text in texts], tmp_path)


def assert_valid_queries(queries: Sequence[str], directory: Path) -> None:
    rules = [{"record": f"query:{number}", "expr": text} for number, text in enumerate(queries)]
    # JSON is valid YAML.
    file = directory / "rules.yml"
    file.write_text(json.dumps({"groups": [{"name": "queries", "rules": rules}]}))
    assert f"{len(rules)} rules found" in promtool("check", "rules", str(file))


def test_the_panels_of_the_dashboard_have_ids_of_their_own_and_do_not_overlap() -> None:
    panels = DASHBOARD["panels"]
    for field in ("id", "gridPos"):
        assert len({json.dumps(panel[field]) for panel in panels}) == len(panels)
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


def test_the_page_lists_every_metric_with_its_type_and_labels() -> None:
    rows = re.findall(r"^\| `(purgatory_\w+)` \| (\w+) \| (.+?) \|", PAGE, flags=re.MULTILINE)
    exported = {
        (
            metric.name + ("_total" if metric.type == "counter" else ""),
            metric.type,
            ", ".join(f"`{label}`" for label in metric.samples[0].labels if label != "le"),
        )
        for metric in all_metrics().collect()
    }
    assert set(rows) == exported


def test_the_page_has_the_instrument_and_the_unit_of_each_metric() -> None:
    rows = re.findall(
        r"^\| `(purgatory_\w+)` .*? \| `(purgatory\.\S+)`, `(\S+)` \|", PAGE, flags=re.MULTILINE
    )
    figures = [figure.metric for figure in (*FIGURES, *LOOP_FIGURES, *MESSAGE_FIGURES, *RELAY_FIGURES)]
    assert set(rows) == {
        (metric.name + ("_total" if metric.counter else ""), metric.instrument, metric.unit)
        for metric in (*figures, WAITS, LATENESS, LOST_ROWS)
    }


def alerts() -> list[str]:
    """The alerts on the page, each with its comment."""
    [block] = re.findall(r"```promql\n(.*?)```", PAGE, flags=re.DOTALL)
    queries: list[str] = block.split("\n\n")
    return queries


def test_the_alerts_on_the_page_are_valid(tmp_path: Path) -> None:
    assert len(alerts()) == 14
    assert_valid_queries(alerts(), tmp_path)
