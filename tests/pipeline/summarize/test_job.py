"""The command `summarize`, on a dataset as `compact` leaves it."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from purgatory.pipeline.dataset import Dataset
from purgatory.pipeline.errors import PipelineError
from purgatory.pipeline.jobs import summarize
from purgatory.pipeline.schemas import CHECKS_TABLE, COMMITS, GAPS_TABLE, OPERATIONS_TABLE, Table


def fill(dataset: Dataset, table: Table, rows: DataFrame) -> None:
    dated = rows.withColumn("date", F.to_date(table.instant)).withColumn("batch", F.lit(0))
    dated.write.partitionBy(*table.partitions, "batch").parquet(dataset.table(table))
    commit = rows.sparkSession.createDataFrame([(1, 0, 1, 1, 0, 0, table.name, 0)], COMMITS)
    commit.write.mode("append").partitionBy("table", "batch").parquet(dataset.commits)


def summaries(spark: SparkSession, dataset: Dataset) -> dict[str, list[Any]]:
    names = [summarize.MINUTES, summarize.PENDING, summarize.HOTTEST_KEYS, summarize.FAN_OUT, summarize.GAPS]
    return {name: spark.read.parquet(dataset.summary(name)).collect() for name in names}


def interrupt(*arguments: object, **named: object) -> None:
    raise KeyboardInterrupt


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    return Dataset(f"{tmp_path}/dataset")


def test_it_writes_the_summaries_and_reports_gaps(
    spark: SparkSession,
    dataset: Dataset,
    operations: Any,
    checks: Any,
    gaps: Any,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fill(
        dataset, OPERATIONS_TABLE, operations({}, {"waited_us": 90_000_000}, {"started": 300, "keys": ["x"]})
    )
    fill(dataset, CHECKS_TABLE, checks({}, {"checked": 70}))
    fill(dataset, GAPS_TABLE, gaps({"began": 59, "ended": 61}))
    options = Namespace(dataset=dataset, hottest=1)

    summarize.run(spark, options)
    output = capsys.readouterr().out
    found = summaries(spark, dataset)

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
    assert f"{dataset.summary('minutes')}: 3 rows" in output
    assert "2 minutes from 2026-03-01 12:00 to 2026-03-01 12:01 are incomplete" in output

    # While it runs again, the last table is missing.
    monkeypatch.setattr(summarize, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        summarize.run(spark, options)
    left = sorted(path.name for path in Path(dataset.root, "summary").iterdir())
    assert left == sorted(found.keys() - {"fan_out"})


def test_a_directory_without_a_dataset_is_an_error(spark: SparkSession, dataset: Dataset) -> None:
    with pytest.raises(PipelineError, match="nothing is compacted"):
        summarize.run(spark, Namespace(dataset=dataset, hottest=1))
