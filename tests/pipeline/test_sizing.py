"""Spark's settings fit the size of the data."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from purgatory.pipeline import sizing
from purgatory.pipeline.command import parser
from purgatory.pipeline.sizing import fit, is_short
from tests.pipeline.journals import add_segment, operation


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


@pytest.mark.parametrize(
    ("arguments", "short"),
    [
        (["compact", "{journal}", "{dataset}"], True),
        (["summarize", "{dataset}"], True),
        # Java has more to do in these.
        (["generate", "{journal}"], False),
        (["advise", "{dataset}"], False),
        (["run", "{journal}", "{dataset}", "page"], False),
    ],
    ids=lambda each: each[0] if isinstance(each, list) else "",
)
def test_a_session_is_short_if_java_has_little_to_do(
    arguments: list[str], short: bool, tmp_path: Path
) -> None:
    assert is_short(parsed(arguments, tmp_path)) == short


def test_a_session_for_much_data_is_not_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizing, "_SHORT_SIZE", 100)
    assert not is_short(parsed(["compact", "{journal}", "{dataset}"], tmp_path))


def parsed(arguments: list[str], directory: Path) -> Namespace:
    add_segment(directory / "journal", "a", [operation()])
    places = {name: directory / name for name in ("journal", "dataset")}
    return parser().parse_args([each.format(**places) for each in arguments])
