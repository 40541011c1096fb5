"""The timeouts that the recorded operations had."""

from __future__ import annotations

from pyspark.sql import SparkSession

from purgatory.pipeline.advise.present_timeouts import present_timeouts


def test_the_most_frequent_timeouts_come_first_and_the_longest_of_equally_frequent_ones(
    spark: SparkSession,
) -> None:
    timeouts = {"a": [5, 5, 5, 1, 2, 2, None], "b": [None, None, 7], "c": [1, 2, None]}
    rows = [(stratum, timeout) for stratum, each in timeouts.items() for timeout in each]
    operations = spark.createDataFrame(rows, "stratum string, timeout_us long")

    found = present_timeouts(operations, up_to=3).orderBy("stratum", "rank").collect()

    assert [(row.stratum, row.rank, row.timeout_us, row.operations) for row in found] == [
        ("a", 1, 5, 3),
        ("a", 2, 2, 2),
        ("a", 3, None, 1),
        ("b", 1, None, 2),
        ("b", 2, 7, 1),
        ("c", 1, None, 1),
        ("c", 2, 2, 1),
        ("c", 3, 1, 1),
    ]
