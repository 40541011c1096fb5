"""Starts and stops Spark sessions."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from purgatory.pipeline import surroundings
from purgatory.pipeline.java import java_home

_LOGGING: Final = Path(__file__).with_name("log4j2.properties")

_JAVA_OPTIONS: Final = "spark.driver.defaultJavaOptions"
# Java's optimizing compiler takes a third of the processor time of a session that runs for a minute.
_QUICK_COMPILER: Final = "-XX:TieredStopAtLevel=1"

_SETTINGS: Final = {
    "spark.sql.session.timeZone": "UTC",
    # Spark does not know the sizes of the rows that Arrow reads, and would send large tables to every task.
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    "spark.sql.adaptive.autoBroadcastJoinThreshold": "10m",
    # The rows of some frames are whole files, so batches are limited by bytes.
    "spark.sql.execution.arrow.maxBytesPerBatch": str(32 << 20),
    # With debugging, each column expression makes four more calls to Java, about its source line.
    "spark.python.sql.dataFrameDebugging.enabled": "false",
    # A task reads this many bytes. `compact` writes files of about this size. Small files are read together.
    "spark.sql.files.maxPartitionBytes": "32m",
    "spark.sql.files.openCostInBytes": "1m",
    # The driver has the paths of the files. So the driver looks at the files itself, and starts no job.
    "spark.sql.sources.parallelPartitionDiscovery.threshold": "10000",
    "spark.ui.enabled": "false",
    _JAVA_OPTIONS: f"-Dlog4j2.configurationFile={_LOGGING.as_uri()}",
}

# If the master is on this machine, the driver uses loopback. Otherwise the driver might choose the address of
# a network that is down.
_LOOPBACK: Final = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
_ON_THIS_MACHINE: Final = ("local", "spark://127.0.0.1:", "spark://localhost:")
# Without a cluster, the workers have this package and the driver's PySpark.
_DAEMON: Final = {"spark.python.daemon.module": "purgatory.pipeline.daemon"}


@contextmanager
def spark_session(
    master: str = "local[*]",
    app_name: str = "purgatory",
    *,
    progress: bool = False,
    short: bool = False,
    settings: Mapping[str, str] | None = None,
) -> Iterator[SparkSession]:
    """Open a Spark session at `master` until the block ends. Times are UTC.

    With `progress`, Spark draws a bar on standard error for stages longer than half a second. In a session
    that is `short`, Java compiles fast, and does not optimize. `settings` override the defaults of this
    module. Raises JavaMissingError if there is no Java, and
    PipelineError if Spark cannot start here for another reason.
    """
    surroundings.check(master)
    with java_home() as home, _environment(JAVA_HOME=str(home), PYSPARK_PYTHON=_python()):
        chosen = _SETTINGS | {"spark.ui.showConsoleProgress": str(progress).lower()}
        if master.startswith(_ON_THIS_MACHINE):
            chosen |= _LOOPBACK
        if master.startswith("local"):
            chosen |= _DAEMON
        if short:
            chosen[_JAVA_OPTIONS] += f" {_QUICK_COMPILER}"
        builder = SparkSession.builder.master(master).appName(app_name)
        for name, value in {**chosen, **(settings or {})}.items():
            builder = builder.config(name, value)
        spark = builder.getOrCreate()
        try:
            yield spark
        finally:
            # If the Java process has ended, `stop` fails. The error of the block says more than this error.
            with (
                suppress(Py4JError, ConnectionError),
                warnings.catch_warnings(action="ignore", category=RuntimeWarning),
            ):
                spark.stop()


def _python() -> str:
    """The Python of Spark's workers: this Python, unless PYSPARK_PYTHON names another Python."""
    return os.environ.get("PYSPARK_PYTHON", sys.executable)


@contextmanager
def _environment(**values: str) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
