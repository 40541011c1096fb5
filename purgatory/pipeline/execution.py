"""Runs a command. What Spark, Java, Delta Lake or DuckDB raises is said in a sentence."""

from __future__ import annotations

import re
import sys
from argparse import Namespace
from typing import Final

import duckdb
from deltalake.exceptions import DeltaError
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException

from purgatory.pipeline.errors import INSTALL, PipelineError
from purgatory.pipeline.jobs import job_of
from purgatory.pipeline.spark import Spark

_TRACEBACK: Final = "Traceback (most recent call last):"


def execute(options: Namespace) -> int:
    """Run the command of these options. Returns its exit status. Raises PipelineError if it fails."""
    try:
        job = job_of(options.command)
        job.check(options)
        with Spark(
            options.master,
            f"purgatory-pipeline {options.command}",
            progress=sys.stderr.isatty(),
            settings={"spark.driver.memory": options.memory, **dict(options.conf)},
        ) as spark:
            return job.run(spark, options) or 0
    except (DeltaError, PySparkException, Py4JJavaError, duckdb.Error) as error:
        raise PipelineError(_message(str(error))) from error
    except (Py4JError, ConnectionRefusedError, ConnectionResetError) as error:
        raise PipelineError(
            "Spark's Java process ended, often for lack of memory; "
            f"give it more than --memory {options.memory}, or read its output above"
        ) from error


def _message(message: str) -> str:
    """The cause that an error message of Spark names, without stack traces."""
    if missing := re.search(r"ModuleNotFoundError: No module named '([\w.]+)'", message):
        return (
            f"{missing[1]} is not installed on the executors; {INSTALL} on each worker, and set "
            "PYSPARK_PYTHON to the Python that has it"
        )
    what, _, stack = message.partition("\n\tat ")
    causes = re.findall(r"^Caused by: (.*)", stack, re.MULTILINE)
    if _TRACEBACK in what:
        # The last line that is not indented names the error.
        causes = [line for line in what.splitlines() if line[:1].strip()]
    return f"{causes[-1]}; fix the cause, and run the command again" if causes else what.strip()
