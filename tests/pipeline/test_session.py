"""Sessions of Spark: settings, environment, and stopping."""

from __future__ import annotations

import os
import sys
from typing import Any

import pytest
from py4j.protocol import Py4JNetworkError
from pyspark.sql import SparkSession

from purgatory.pipeline import session
from purgatory.pipeline.session import spark_session


class Builder:
    """A fake builder of sessions, which is also the session."""

    def __init__(self) -> None:
        self.settings: dict[str, str] = {}
        self.environment: dict[str, str] = {}
        self.stopped = False
        # The error that stopping it raises.
        self.fails: Exception | None = None

    def master(self, url: str) -> Builder:
        return self.config("master", url)

    def appName(self, name: str) -> Builder:
        return self

    def config(self, name: str, value: str) -> Builder:
        self.settings[name] = value
        return self

    def getOrCreate(self) -> Builder:
        self.environment = dict(os.environ)
        return self

    def stop(self) -> None:
        self.stopped = True
        if self.fails is not None:
            raise self.fails


@pytest.fixture
def builder(monkeypatch: pytest.MonkeyPatch) -> Builder:
    builder = Builder()
    monkeypatch.setattr(session, "SparkSession", type("Session", (), {"builder": builder}))
    return builder


def test_it_stops_with_its_block_and_restores_the_environment(
    builder: Builder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    before = dict(os.environ)
    with pytest.raises(KeyError), spark_session():
        raise KeyError
    assert builder.environment["PYSPARK_PYTHON"] == sys.executable
    assert builder.environment["JAVA_HOME"] != "/nowhere"
    assert builder.stopped
    assert dict(os.environ) == before


def test_if_java_has_ended_the_error_of_the_block_is_raised(builder: Builder) -> None:
    builder.fails = Py4JNetworkError("Answer from Java side is empty")
    with pytest.raises(KeyError), spark_session():
        raise KeyError
    assert builder.stopped


@pytest.mark.parametrize(
    ("master", "loopback"),
    [("local[2]", True), ("spark://127.0.0.1:7077", True), ("spark://localhost:1", True), ("yarn", False)],
)
def test_with_a_local_master_the_driver_uses_loopback(master: str, loopback: bool, builder: Builder) -> None:
    with spark_session(master):
        assert builder.settings["master"] == master
        assert builder.settings.get("spark.driver.host") == ("127.0.0.1" if loopback else None)


def test_settings_override_the_defaults(builder: Builder) -> None:
    with spark_session(progress=True, settings={"spark.ui.enabled": "true"}):
        assert builder.settings["spark.ui.enabled"] == "true"
        assert builder.settings["spark.ui.showConsoleProgress"] == "true"


def test_instants_are_in_utc(spark: SparkSession) -> None:
    assert spark.sql("SELECT hour(timestamp_seconds(0))").collect()[0][0] == 0


def test_warnings_of_spark_are_logged_except_for_errors_that_are_raised_as_well(spark: SparkSession) -> None:
    jvm: Any = spark.sparkContext._jvm
    loggers = jvm.org.slf4j.LoggerFactory
    assert loggers.getLogger("org.apache.spark.sql.execution.datasources.FileScanRDD").isWarnEnabled()
    assert not loggers.getLogger("org.apache.spark.SparkContext").isInfoEnabled()
    assert not loggers.getLogger("org.apache.spark.executor.Executor").isErrorEnabled()
