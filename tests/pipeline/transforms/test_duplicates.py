"""Duplicate rows are found."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from purgatory.pipeline.transforms.duplicates import duplicates, has_duplicates, new_identities

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
    ("own", "known", "duplicate"),
    [
        (["a", "b"], ["c"], False),
        (["a", "b"], [], False),
        (["a", "b", "a"], [], True),
        (["a", "b"], ["c", "b"], True),
    ],
)
def test_it_is_known_whether_there_are_any(
    own: list[str], known: list[str], duplicate: bool, spark: SparkSession
) -> None:
    rows, others = (
        spark.createDataFrame([(node, 1) for node in nodes], "node string, operation_id long")
        for nodes in (own, known)
    )
    assert has_duplicates(rows, others, IDENTITY, count=len(own)) is duplicate
