"""Duplicate rows are found."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from purgatory.pipeline.schemas import OPERATIONS_TABLE
from purgatory.pipeline.transforms.duplicates import duplicates, has_duplicates, new_identities
from tests.pipeline.journals import NOON, add_segment, operation

IDENTITY = ("node", "operation_id")
COLUMNS = "source string, position long, node string, operation_id long, tries int"
ROWS = (
    ("2", 0, "a", 1, 22),
    ("1", 9, "a", 1, 11),
    ("1", 10, "a", 1, 33),
    ("1", 1, "b", 1, 44),
    ("1", 2, "a", 2, 55),
    ("1", 3, "a", 2, 55),
    ("1", 4, "b", 3, 66),
)


def test_all_but_the_first_of_each_identity_are_duplicates_and_all_whose_identity_is_known(
    spark: SparkSession,
) -> None:
    known = spark.createDataFrame([("a", 2), ("b", 4)], "node string, operation_id long")
    for order in (ROWS, ROWS[::-1]):
        rows = spark.createDataFrame(order, COLUMNS)
        found = duplicates(rows, known, IDENTITY).collect()
        assert sorted(tuple(row) for row in found) == [("1", 2), ("1", 3), ("1", 10), ("2", 0)]
    new = new_identities(rows, known, IDENTITY).collect()
    assert sorted(tuple(row) for row in new) == [("a", 1), ("b", 1), ("b", 3)]


@pytest.mark.parametrize(
    ("files", "duplicate"),
    [
        ([[1, 2], [3]], False),
        ([[1, 2], [2]], True),
        ([[1, 2, 1]], True),
    ],
    ids=["none", "in two files", "in one file"],
)
def test_it_is_known_whether_there_are_any(
    files: list[list[int]], duplicate: bool, spark: SparkSession, tmp_path: Path
) -> None:
    paths = [
        str(add_segment(tmp_path, f"{number}", [operation(each) for each in ids]))
        for number, ids in enumerate(files)
    ]
    assert has_duplicates(spark.sparkContext, OPERATIONS_TABLE, paths) is duplicate


def test_rows_that_differ_in_one_part_of_their_identity_are_no_duplicates(
    spark: SparkSession, tmp_path: Path
) -> None:
    rows = [
        operation(),
        operation(node="b"),
        operation(purgatory="produce"),
        operation(started=NOON + timedelta(days=1)),
    ]
    path = add_segment(tmp_path, "one", rows)
    assert not has_duplicates(spark.sparkContext, OPERATIONS_TABLE, [str(path)])
    # The rest does not matter, nor does the time of the day.
    alike = add_segment(tmp_path, "two", [operation(started=NOON + timedelta(seconds=1), tries=7)])
    assert has_duplicates(spark.sparkContext, OPERATIONS_TABLE, [str(path), str(alike)])
