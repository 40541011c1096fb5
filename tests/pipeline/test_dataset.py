"""The tables of a dataset, and which of them belong together."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from purgatory.pipeline.batches import Batches
from purgatory.pipeline.dataset import Dataset
from purgatory.pipeline.errors import PipelineError
from purgatory.pipeline.schemas import GAPS_TABLE
from purgatory.pipeline.tables import REPLAY_TABLES, SENTENCES, SETTINGS
from tests.pipeline.datasets import derive

SENTENCE = {"purgatory": "p", "kind": "k", "share": 0.5, "sentence": "So it is."}


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    return Dataset(f"{tmp_path}/dataset")


def test_all_tables_of_a_dataset_are_below_its_root() -> None:
    dataset = Dataset("data/")
    assert dataset.table(GAPS_TABLE).path == "data/gaps"
    assert dataset.segments.path == "data/segments"
    assert dataset.quarantine.path == "data/quarantine"
    assert dataset.derived(SETTINGS).path == "data/replay/settings"


def test_a_dataset_of_an_earlier_version_is_refused(spark: SparkSession, dataset: Dataset) -> None:
    Path(dataset.root, "commits", "table=gaps", "batch=0").mkdir(parents=True)
    for use in (lambda: dataset.read_gaps(spark), lambda: Batches(dataset, GAPS_TABLE)):
        with pytest.raises(PipelineError, match="an earlier version of purgatory wrote this dataset"):
            use()


def test_a_table_is_replaced_whole(spark: SparkSession, dataset: Dataset) -> None:
    for run, names in ((1, ("b", "a")), (2, ("c",)), (3, ())):
        rows = [("p", name, None, 0.5, "So it is.") for name in names]
        frame = spark.createDataFrame(rows, SENTENCES.columns)
        assert dataset.new_run([SENTENCES]) == run
        assert dataset.replace(SENTENCES, frame, run) == len(names)
        found = dataset.read_derived(spark, SENTENCES)
        assert found.columns == SENTENCES.columns.names
        assert [row["kind"] for row in found.collect()] == sorted(names)


def test_if_writing_a_table_fails_the_old_rows_stay(spark: SparkSession, dataset: Dataset) -> None:
    derive(dataset, SENTENCES, [SENTENCE])
    broken = spark.createDataFrame([SENTENCE], SENTENCES.columns).selectExpr(
        "purgatory", "kind", "key", "share", "raise_error('on purpose') AS sentence"
    )
    with pytest.raises(Exception, match="on purpose"):
        dataset.replace(
            SENTENCES, broken.selectExpr("* EXCEPT (sentence)", "string(sentence) AS sentence"), 2
        )
    assert dataset.read_derived(spark, SENTENCES).count() == 1


def test_a_table_with_other_columns_than_declared_is_not_written(
    spark: SparkSession, dataset: Dataset
) -> None:
    derive(dataset, SENTENCES, [SENTENCE])
    frame = spark.createDataFrame([SENTENCE], SENTENCES.columns).selectExpr("* EXCEPT (share)", "1 AS share")
    with pytest.raises(
        TypeError, match=r"found the columns \[\('share', 'int'\)\], and \[\('share', 'double'\)\]"
    ):
        dataset.replace(SENTENCES, frame, 2)
    assert dataset.derived(SENTENCES).transaction("run") == 1


def test_of_two_processes_that_make_a_table_at_the_same_time_one_is_refused(
    spark: SparkSession, dataset: Dataset
) -> None:
    run = dataset.new_run([SENTENCES])
    derive(dataset, SENTENCES, [SENTENCE], run=run)
    with pytest.raises(PipelineError, match="another process has made this table meanwhile"):
        dataset.replace(SENTENCES, spark.createDataFrame([], SENTENCES.columns), run)
    assert dataset.read_derived(spark, SENTENCES).count() == 1


def test_tables_of_different_runs_do_not_count(spark: SparkSession, dataset: Dataset) -> None:
    settings, recommendations = REPLAY_TABLES
    derive(dataset, settings, [])
    assert dataset.read_run(spark, REPLAY_TABLES) == {}
    derive(dataset, recommendations, [])
    assert list(dataset.read_run(spark, REPLAY_TABLES)) == ["settings", "recommendations"]
    derive(dataset, settings, [], run=dataset.new_run(REPLAY_TABLES))
    assert dataset.read_run(spark, REPLAY_TABLES) == {}
    assert dataset.new_run(REPLAY_TABLES) == 3
