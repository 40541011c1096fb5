"""The command `summarize`, on a dataset as `compact` leaves it."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest

from purgatory.pipeline.dataset import Dataset
from purgatory.pipeline.jobs import summarize
from purgatory.pipeline.schemas import CHECKS_TABLE, GAPS_TABLE, OPERATIONS_TABLE
from purgatory.pipeline.spark import Spark
from purgatory.pipeline.tables import MINUTES, SUMMARY_TABLES
from tests.pipeline.datasets import add_batch, derive, rows_of_run


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    return Dataset(f"{tmp_path}/dataset")


def test_it_writes_the_summaries_and_reports_gaps(
    spark: Spark,
    dataset: Dataset,
    operations: Any,
    checks: Any,
    gaps: Any,
    capsys: pytest.CaptureFixture[str],
) -> None:
    add_batch(
        dataset,
        OPERATIONS_TABLE,
        operations({}, {"waited_us": 90_000_000}, {"started": 300, "keys": ["x"]}),
    )
    add_batch(dataset, CHECKS_TABLE, checks({}, {"checked": 70}))
    add_batch(dataset, GAPS_TABLE, gaps({"began": 59, "ended": 61}))
    # An earlier run has left these.
    for table in SUMMARY_TABLES:
        derive(dataset, table, [], run=3)

    summarize.run(spark, Namespace(dataset=dataset.root, hottest=1))
    output = capsys.readouterr().out
    found = rows_of_run(dataset, SUMMARY_TABLES)

    assert [row["incomplete"] for row in found["minutes"]] == [True, True, False]
    # The journal begins at noon, and ends a second after 12:05.
    assert [row["partial"] for row in found["minutes"]] == [False, False, True]
    assert [(row["until"] - row["since"]).total_seconds() for row in found["pending"]] == [60, 60, 1]
    assert [row["partial"] for row in found["fan_out"]] == [False, False]
    assert [(row["pending_last"], row["incomplete"]) for row in found["pending"]] == [
        (1, True),
        (0, True),
        (0, False),
    ]
    assert [row["key"] for row in found["hottest_keys"]] == ["k", "k", "k"]
    assert [row["checks"] for row in found["fan_out"]] == [1, 1]
    assert [row["nodes"] for row in found["gaps"]] == [["a"], ["a"]]
    assert f"{dataset.derived(MINUTES).path}: 3 rows" in output
    assert "Incomplete minutes: 2, from 2026-03-01 12:00 to 2026-03-01 12:01, see " in output


def test_it_says_also_that_no_minute_is_incomplete() -> None:
    assert summarize.incompleteness([], "summary/gaps") == "All minutes are complete."
