"""Files that are dealt out to tasks."""

from __future__ import annotations

from functools import partial

import pyarrow as pa
from pyspark.sql import SparkSession

from purgatory.pipeline.tasks import TASK_SIZE, dealt, read_in_workers


def test_each_task_gets_large_and_small_files() -> None:
    sizes = {"a": 1, "b": 4, "c": 2, "d": 3}
    assert dealt(sizes, 2) == [["b", "c"], ["d", "a"]]


def test_there_are_more_tasks_for_more_bytes_and_no_task_without_files() -> None:
    sizes = {f"{number}": TASK_SIZE for number in range(10)}
    assert len(dealt(sizes, 2)) == 10
    assert len(dealt({"a": 1, "b": 1}, 8)) == 2
    assert dealt({}, 8) == [[]]


def test_the_rows_of_each_file_are_read_once(spark: SparkSession) -> None:
    sizes = {f"{number}": number for number in range(7)}
    read = partial(_name, "of ")
    rows = read_in_workers(spark, sizes, read, spark.createDataFrame([], "name string").schema)
    assert rows.rdd.getNumPartitions() == spark.sparkContext.defaultParallelism
    assert sorted(row["name"] for row in rows.collect()) == [f"of {name}" for name in sorted(sizes)]


def _name(prefix: str, path: str) -> list[pa.RecordBatch]:
    return [pa.RecordBatch.from_pydict({"name": [prefix + path]})]
