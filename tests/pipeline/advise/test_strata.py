"""Strata: the groups of operations that get advice."""

from __future__ import annotations

from pyspark.sql import SparkSession

from purgatory.pipeline.advise.strata import flattened, with_strata

COLUMNS = "purgatory string, kind string, keys array<string>, waited_us long"


def test_an_operation_is_in_the_stratum_of_its_kind_and_of_each_of_its_hot_keys(spark: SparkSession) -> None:
    operations = spark.createDataFrame(
        [
            ("fetch", "Fetch", ["hot", "hot", "cold"], 1),
            ("fetch", "Join", ["hot", "warm"], 2),
            ("produce", "P", ["hot"], 3),
        ],
        COLUMNS,
    )
    keys = spark.createDataFrame([("fetch", "hot"), ("fetch", "warm")], "purgatory string, key string")

    rows = flattened(with_strata(operations, keys)).select("purgatory", "kind", "key", "waited_us").collect()

    assert sorted(rows, key=str) == sorted(
        [
            ("fetch", "Fetch", None, 1),
            ("fetch", "Fetch", "hot", 1),
            ("fetch", "Join", None, 2),
            ("fetch", "Join", "hot", 2),
            ("fetch", "Join", "warm", 2),
            ("produce", "P", None, 3),
        ],
        key=str,
    )
