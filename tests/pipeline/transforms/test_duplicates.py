"""Duplicate rows are removed."""

from __future__ import annotations

from pyspark.sql import SparkSession

from purgatory.pipeline.transforms.duplicates import new_identities, without_duplicates

IDENTITY = ("node", "operation_id")
COLUMNS = "source string, position long, node string, operation_id long, tries int"


def test_the_first_duplicate_stays_unless_its_identity_is_known(spark: SparkSession) -> None:
    rows = [
        ("2", 0, "a", 1, 22),
        ("1", 9, "a", 1, 11),
        ("1", 10, "a", 1, 33),
        ("1", 1, "b", 1, 44),
        ("1", 2, "a", 2, 55),
        ("1", 3, "a", 2, 55),
        ("1", 4, "b", 3, 66),
    ]
    known = spark.createDataFrame([("a", 2), ("b", 4)], "node string, operation_id long")
    for order in (rows, rows[::-1]):
        frame = spark.createDataFrame(order, COLUMNS)
        kept = without_duplicates(frame, known, IDENTITY)
        assert kept.columns == frame.columns
        assert sorted(tuple(row) for row in kept.collect()) == [rows[3], rows[6], rows[1]]
        found = new_identities(frame, known, IDENTITY).collect()
        assert sorted(tuple(row) for row in found) == [("a", 1), ("b", 1), ("b", 3)]
