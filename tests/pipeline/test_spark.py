"""When Spark starts and stops, and with which settings and environment."""

from __future__ import annotations

import os
import sys
from typing import Any

import pytest
from py4j.protocol import Py4JNetworkError
from pyspark import SparkConf

from purgatory.pipeline import spark as module
from purgatory.pipeline.spark import Spark


class Context:
    """A fake context of Spark, which is also its class."""

    def __init__(self) -> None:
        self.settings: dict[str, str] = {}
        self.environment: dict[str, str] = {}
        self.starts = self.stops = 0
        # The error that stopping it raises.
        self.fails: Exception | None = None

    def __call__(self, *, conf: SparkConf) -> Context:
        self.settings = dict(conf.getAll())
        self.environment = dict(os.environ)
        self.starts += 1
        return self

    def stop(self) -> None:
        self.stops += 1
        if self.fails is not None:
            raise self.fails


@pytest.fixture
def context(monkeypatch: pytest.MonkeyPatch) -> Context:
    context = Context()
    monkeypatch.setattr(module, "SparkContext", context)
    # Without an argument, a real one would ask Java for the settings if a test has started Java.
    monkeypatch.setattr(module, "SparkConf", lambda: SparkConf(loadDefaults=False))
    return context


def test_it_starts_when_it_is_first_used_and_stops_with_its_block(context: Context) -> None:
    with Spark("local[1]") as spark:
        assert repr(spark) == "<Spark at local[1]>"
        assert context.starts == 0
        assert spark.context is spark.context
        assert (context.starts, context.stops) == (1, 0)
    assert (context.starts, context.stops) == (1, 1)


def test_without_use_it_does_not_start(context: Context) -> None:
    with Spark():
        pass
    assert (context.starts, context.stops) == (0, 0)


def test_it_starts_with_this_python_and_a_java_that_works(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    before = dict(os.environ)
    with Spark() as spark:
        assert spark.context
        assert dict(os.environ) == before
    assert context.environment["PYSPARK_PYTHON"] == sys.executable
    assert context.environment["JAVA_HOME"] != "/nowhere"


def test_if_java_has_ended_the_error_of_the_block_is_raised(context: Context) -> None:
    context.fails = Py4JNetworkError("Answer from Java side is empty")

    def fail(spark: Spark) -> None:
        assert spark.context
        raise KeyError

    with pytest.raises(KeyError), Spark() as spark:
        fail(spark)
    assert context.stops == 1


@pytest.mark.parametrize(
    ("master", "loopback"),
    [("local[2]", True), ("spark://127.0.0.1:7077", True), ("spark://localhost:1", True), ("yarn", False)],
)
def test_with_a_local_master_the_driver_uses_loopback(master: str, loopback: bool, context: Context) -> None:
    with Spark(master) as spark:
        assert spark.context
    assert context.settings["spark.master"] == master
    assert context.settings.get("spark.driver.host") == ("127.0.0.1" if loopback else None)


def test_settings_override_the_defaults(context: Context) -> None:
    with Spark(progress=True, settings={"spark.ui.enabled": "true"}) as spark:
        assert spark.context
    assert context.settings["spark.ui.enabled"] == "true"
    assert context.settings["spark.ui.showConsoleProgress"] == "true"


def test_warnings_of_spark_are_logged_except_for_errors_that_are_raised_as_well(spark: Spark) -> None:
    jvm: Any = spark.context._jvm
    loggers = jvm.org.slf4j.LoggerFactory
    assert loggers.getLogger("org.apache.spark.storage.BlockManager").isWarnEnabled()
    assert not loggers.getLogger("org.apache.spark.SparkContext").isInfoEnabled()
    assert not loggers.getLogger("org.apache.spark.executor.Executor").isErrorEnabled()
