"""Spark: it starts when a command first needs it, and stops with the command."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Final, Self

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext

from purgatory.pipeline import surroundings
from purgatory.pipeline.java import java_home

_LOGGING: Final = Path(__file__).with_name("log4j2.properties")

# Java's optimizing compiler takes a third of the processor time of a command that runs for a minute. It does
# not pay, because no row passes through Java.
_JAVA_OPTIONS: Final = f"-Dlog4j2.configurationFile={_LOGGING.as_uri()} -XX:TieredStopAtLevel=1"

_SETTINGS: Final = {"spark.ui.enabled": "false", "spark.driver.defaultJavaOptions": _JAVA_OPTIONS}

# If the master is on this machine, the driver uses loopback. Otherwise the driver might choose the address of
# a network that is down.
_LOOPBACK: Final = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
_ON_THIS_MACHINE: Final = ("local", "spark://127.0.0.1:", "spark://localhost:")


class Spark:
    """Spark at a master. It starts when its context is first used, because some commands do not need it."""

    def __init__(
        self,
        master: str = "local[*]",
        name: str = "purgatory",
        *,
        progress: bool = False,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        """With `progress`, Spark draws a bar on standard error for stages longer than half a second.

        `settings` override the defaults of this module.
        """
        loopback = _LOOPBACK if master.startswith(_ON_THIS_MACHINE) else {}
        shown = {"spark.ui.showConsoleProgress": str(progress).lower()}
        own = {"spark.master": master, "spark.app.name": name}
        self._settings = {**_SETTINGS, **loopback, **shown, **(settings or {}), **own}

    def __repr__(self) -> str:
        return f"<Spark at {self._settings['spark.master']}>"

    @cached_property
    def context(self) -> SparkContext:
        """Start Spark.

        Raises JavaMissingError if there is no Java, and PipelineError if Spark cannot start here for another
        reason.
        """
        surroundings.check(self._settings["spark.master"])
        with java_home() as home, _environment(JAVA_HOME=str(home), PYSPARK_PYTHON=_python()):
            return SparkContext(conf=SparkConf().setAll(list(self._settings.items())))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        started: SparkContext | None = vars(self).pop("context", None)
        # If the Java process has ended, `stop` fails. The error of the block says more than this error.
        with (
            suppress(Py4JError, ConnectionError),
            warnings.catch_warnings(action="ignore", category=RuntimeWarning),
        ):
            if started is not None:
                started.stop()


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
