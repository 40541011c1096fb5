"""The command `report`, on tables as the other commands leave them."""

from __future__ import annotations

import json
from argparse import Namespace
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import vl_convert

from purgatory.pipeline import tables as derived
from purgatory.pipeline.commands import parser
from purgatory.pipeline.dataset import Dataset
from purgatory.pipeline.errors import PipelineError
from purgatory.pipeline.jobs import report
from purgatory.pipeline.schemas import GAPS_TABLE, OPERATIONS_TABLE, Table
from purgatory.pipeline.spark import Spark
from tests.pipeline.datasets import add_batch, derive
from tests.pipeline.journals import NOON, ROWS
from tests.pipeline.report.sample_findings import (
    MINUTE,
    Row,
    checks,
    curve,
    effects,
    hot_keys,
    minute,
    recommendation,
    settings,
    timeouts,
    verdict,
)

_OF_PENDING = ("minute", "since", "until", "purgatory", "kind")


def compact(dataset: Dataset, table: Table, *rows: Row) -> None:
    """Compact rows as one batch."""
    add_batch(dataset, table, rows)


def at_minute(row: Row) -> Row:
    return {"minute": row["since"], "partial": False} | row


@pytest.fixture(scope="module", autouse=True)
def bundle() -> Any:
    """A fake for the libraries of the charts. `test_browser` uses the real ones."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vl_convert, "javascript_bundle", lambda snippet, vl_version: "")
        yield


@pytest.fixture(scope="module")
def dataset(spark: Spark, tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    """A dataset with all tables. The minutes are 20 hours apart, and one curve is of a key."""
    dataset = Dataset(f"{tmp_path_factory.mktemp('dataset')}")
    compact(dataset, OPERATIONS_TABLE, ROWS["operations"], ROWS["operations"] | {"node": "b"})
    compact(dataset, GAPS_TABLE, ROWS["gaps"], ROWS["gaps"] | {"node": "c"})
    late = minute(1_200, lateness_p99_us=None)
    minutes = [at_minute(minute(0)), at_minute(late)]
    of_pending = {"pending_max": 3, "pending_mean": 1.5, "pending_last": 2}
    pending = [{name: row[name] for name in _OF_PENDING} | of_pending for row in minutes]
    for table, rows in {
        derived.MINUTES: minutes,
        derived.PENDING: pending,
        derived.FAN_OUT: [at_minute(checks(0))],
        derived.GAP_MINUTES: [{"minute": NOON, "nodes": ["a"]}],
        derived.HOTTEST_KEYS: hot_keys(),
        derived.CURVES: [*curve(), *curve(key="k")],
        derived.TIMEOUTS: [*timeouts(), *timeouts(key="k")],
        derived.EFFECTS: [*effects(), *effects(key="k")],
        derived.VERDICTS: [verdict(), verdict(key="k")],
        derived.SETTINGS: settings(),
        derived.RECOMMENDATIONS: [recommendation()],
    }.items():
        derive(dataset, table, rows)
    return dataset


def run(spark: Spark, dataset: Dataset, output: Path) -> dict[str, list[Row]]:
    """Run the command. Returns the tables of the report."""
    report.run(spark, parser().parse_args(["report", dataset.root, str(output)]))
    return {path.stem: pq.read_table(path).to_pylist() for path in (output / "tables").glob("*.parquet")}


def test_it_writes_a_page_and_its_tables(
    spark: Spark, dataset: Dataset, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tables = run(spark, dataset, tmp_path / "new" / "report")
    page = (tmp_path / "new" / "report" / "index.html").read_text()

    assert f"The report is in {tmp_path}/new/report/index.html" in capsys.readouterr().out
    # 1,201 minutes are drawn in steps of 5.
    assert [row["since"] for row in tables["minutes"]] == [NOON, NOON + 1_200 * MINUTE]
    assert [row["until"] - row["since"] for row in tables["minutes"]] == [5 * MINUTE, MINUTE]
    assert len(tables["pending"]) == 241
    assert [row["incomplete_minutes"] for row in tables["gaps"]] == [1]
    assert [row["operations"] for row in tables["kinds"]] == [8]
    assert [(row["node"], row["lost_operations"]) for row in tables["nodes"]] == [
        ("a", 3),
        ("b", 0),
        ("c", 3),
    ]
    assert [(row["table"], row["kept"]) for row in tables["commits"]] == [("gaps", 2), ("operations", 2)]
    assert {row["written"] for row in tables["commits"]} == {NOON}
    # Only curves of kinds, and timeouts of kinds before those of keys.
    assert [row["waited_us"] for row in tables["curves"]] == [0, 1_000, 2_000, 4_000]
    assert [row["key"] for row in tables["timeouts"]] == [None] * 3 + ["k"] * 3
    assert [row["timeout_us"] for row in tables["effects"]] == [1_000, 2_000, 5_000] * 2
    assert [row["key"] for row in tables["verdicts"]] == [None, "k"]
    assert len(tables["settings"]) == 3
    for name, rows in tables.items():
        assert f'href="tables/{name}.json"' in page
        records = json.loads((tmp_path / "new" / "report" / "tables" / f"{name}.json").read_text())
        assert records == json.loads(json.dumps(rows, default=datetime.isoformat))


def test_the_tables_of_an_unfinished_command_are_ignored(
    spark: Spark, tmp_path: Path, dataset: Dataset
) -> None:
    started = Dataset(f"{tmp_path}/dataset")
    compact(started, OPERATIONS_TABLE, ROWS["operations"])
    # Its first table is of the second run, and the others are of the first.
    for table in derived.SUMMARY_TABLES:
        derive(started, table, [], run=2 if table is derived.GAP_MINUTES else 1)
    derive(started, derived.CURVES, curve())

    tables = run(spark, started, tmp_path / "report")

    assert sorted(tables) == ["commits", "nodes"]
    assert "There is no summary yet." in (tmp_path / "report" / "index.html").read_text()


def test_a_directory_without_a_dataset_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match="nothing is compacted"):
        report.check(Namespace(dataset=f"{tmp_path}/none", output=f"{tmp_path}/report"))

    assert not (tmp_path / "report").exists()
