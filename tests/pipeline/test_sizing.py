"""Spark's settings fit the size of the data."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from purgatory.pipeline.sizing import fit


def session(cores: int = 2, **given: str) -> Any:
    """A fake session, in which the user has given some settings. What is set is in `found`."""
    found: dict[str, str] = {}
    names = {name.replace("_", "."): value for name, value in given.items()}
    context = SimpleNamespace(
        defaultParallelism=cores, getConf=lambda: SimpleNamespace(contains=names.__contains__)
    )
    return SimpleNamespace(sparkContext=context, conf=SimpleNamespace(set=found.__setitem__), found=found)


def settings(size: int, **options: Any) -> dict[str, str]:
    spark = session(**options)
    fit(spark, size)
    found: dict[str, str] = spark.found
    return {name.removeprefix("spark.sql."): value for name, value in found.items()}


def test_small_data_has_a_partition_for_each_core_and_plans_that_are_made_once() -> None:
    assert settings(1 << 20, cores=3) == {
        "shuffle.partitions": "3",
        "adaptive.enabled": "false",
        "codegen.wholeStage": "false",
        "codegen.factoryMode": "NO_CODEGEN",
    }


def test_large_data_has_partitions_in_proportion_and_compiled_plans() -> None:
    found = settings(1 << 30)
    assert found["shuffle.partitions"] == "256"
    assert (found["adaptive.enabled"], found["codegen.wholeStage"]) == ("true", "true")
    assert int(settings((1 << 30) + 1)["shuffle.partitions"]) == 257


def test_what_the_user_has_set_stays() -> None:
    found = settings(1 << 20, spark_sql_shuffle_partitions="7", spark_sql_adaptive_enabled="true")
    assert sorted(found) == ["codegen.factoryMode", "codegen.wholeStage"]
