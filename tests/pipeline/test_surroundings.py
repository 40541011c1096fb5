"""What Spark could not start with is named in one sentence, with the fix."""

from __future__ import annotations

import os
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from purgatory.pipeline.errors import PipelineError
from purgatory.pipeline.surroundings import check


@pytest.fixture
def spark_home(tmp_path: Path) -> Path:
    (tmp_path / "bin").mkdir()
    (tmp_path / "jars").mkdir()
    return tmp_path


@pytest.mark.parametrize(
    ("environment", "message"),
    [
        ({"SPARK_HOME": "/no/such"}, "SPARK_HOME names /no/such, which has no Spark; unset it"),
        ({"PYSPARK_PYTHON": "/no/such"}, "PYSPARK_PYTHON names /no/such, which is no program here; unset it"),
        (
            {"PYSPARK_SUBMIT_ARGS": "--master yarn"},
            "PYSPARK_SUBMIT_ARGS is '--master yarn', and must end with pyspark-shell; "
            "unset it, and use --conf",
        ),
    ],
    ids=str,
)
def test_a_variable_with_which_spark_cannot_start_is_named(environment: dict[str, str], message: str) -> None:
    with pytest.raises(PipelineError) as raised:
        check("local[*]", environment)
    assert str(raised.value) == message


def test_a_home_of_another_spark_is_named_with_its_version(spark_home: Path) -> None:
    check("local[*]", {"SPARK_HOME": str(spark_home)})
    jar = spark_home / "jars" / "spark-core_2.12-3.5.3.jar"
    jar.touch()
    with pytest.raises(
        PipelineError,
        match=rf"^SPARK_HOME names Spark 3\.5\.3, and this needs {version('pyspark')}; unset it$",
    ):
        check("local[*]", {"SPARK_HOME": str(spark_home)})
    jar.rename(jar.with_name(f"spark-core_2.13-{version('pyspark')}.jar"))
    check("local[*]", {"SPARK_HOME": str(spark_home)})


def test_variables_with_which_spark_starts_are_accepted() -> None:
    check("local[*]", {})
    check("local[*]", {"PYSPARK_PYTHON": sys.executable, "PYSPARK_SUBMIT_ARGS": "--verbose pyspark-shell"})
    # It is on the workers.
    check("spark://host:7077", {"PYSPARK_PYTHON": "/no/such"})


def test_a_user_without_a_name_is_an_error_where_users_have_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "getuid", lambda: 4_000_000)
    with pytest.raises(PipelineError, match="the user 4000000 has no name, which Spark needs"):
        check("local[*]", {})
    # As on Windows.
    monkeypatch.setitem(sys.modules, "pwd", None)
    check("local[*]", {})
