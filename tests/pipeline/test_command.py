"""The command line."""

from __future__ import annotations

import argparse
import importlib.util
import runpy
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from py4j.protocol import Py4JNetworkError
from pyspark.errors import AnalysisException, PythonException
from pyspark.sql import SparkSession

from purgatory.pipeline import session
from purgatory.pipeline.command import FAILED, INTERRUPTED, USAGE_ERROR, main, parser
from purgatory.pipeline.errors import PipelineError
from purgatory.pipeline.job import Job
from purgatory.pipeline.jobs import JOBS, generate

DIED = (
    "purgatory-pipeline: Spark's Java process has died, often for lack of memory; "
    "give it more than --memory 4g, or see above what it said\n"
)


@pytest.fixture
def sessions(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """How sessions were asked for; there are none."""
    asked: list[dict[str, Any]] = []

    @contextmanager
    def no_session(master: str, app_name: str, **options: Any) -> Iterator[None]:
        asked.append({"master": master, "app_name": app_name, **options})
        yield None

    monkeypatch.setattr(session, "spark_session", no_session)
    return asked


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.NAME)
def test_every_command_has_help_with_an_example_that_it_understands(
    job: Job, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main([job.NAME, "--help"])
    assert ended.value.code == 0
    prefix = f"  purgatory-pipeline {job.NAME} "
    examples = [line for line in capsys.readouterr().out.splitlines() if line.startswith(prefix)]
    assert examples
    for example in examples:
        words = [word.strip("'") for word in example.split()[1:]]
        assert parser().parse_args(words).job is job


@pytest.mark.parametrize(
    "arguments",
    [[], ["fly"], ["generate"], ["generate", "x", "--conf", "y"], ["generate", "x", "--keys", "0"],
     ["generate", "x", "--hot", "1.5"], ["generate", "x", "--zipf", "nan"],
     ["generate", "x", "--start", "noon"], ["generate", "x", "--start", "0001-01-01T00:00+01:00"],
     ["generate", "x", "--kind", "Fetch:1"],
     ["generate", "x", "--kind", "Fetch:1:1:0"]],
    ids=" ".join,
)  # fmt: skip
def test_what_cannot_be_understood_is_wrong_use(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == USAGE_ERROR


def test_the_session_is_as_the_arguments_say(
    sessions: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generate, "run", lambda spark, options: None)
    assert main(["generate", "x", "--master", "spark://m:7077", "--memory", "2g", "--conf", "a=b=c"]) == 0
    assert sessions[0]["master"] == "spark://m:7077"
    assert sessions[0]["settings"] == {"spark.driver.memory": "2g", "a": "b=c"}


@pytest.mark.parametrize(
    ("error", "status", "told"),
    [
        (PipelineError("x: missing; make it"), FAILED, "purgatory-pipeline: x: missing; make it\n"),
        (
            AnalysisException("no such path\n\tat org.apache.Deep"),
            FAILED,
            "purgatory-pipeline: no such path\n",
        ),
        (
            PythonException(
                "thrown from the Python worker:\n  File x\nModuleNotFoundError: No module named 'b'"
            ),
            FAILED,
            "purgatory-pipeline: b is not installed where the executors run; install "
            "purgatory's extra `spark` on each worker, and name the Python that has it by PYSPARK_PYTHON\n",
        ),
        (Py4JNetworkError("Answer from Java side is empty"), FAILED, DIED),
        (ConnectionRefusedError(111, "Connection refused"), FAILED, DIED),
        (
            PermissionError(13, "Permission denied", "/report"),
            FAILED,
            "purgatory-pipeline: [Errno 13] Permission denied: '/report'; "
            "put that right, or name another place\n",
        ),
        (KeyboardInterrupt(), INTERRUPTED, "interrupted; run it again to go on\n"),
    ],
    ids=[
        "of the pipeline",
        "of Spark",
        "of a worker",
        "of no Java",
        "of none to call",
        "of a file",
        "interrupted",
    ],
)
@pytest.mark.usefixtures("sessions")
def test_what_goes_wrong_is_told_in_words(
    error: BaseException,
    status: int,
    told: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(spark: SparkSession, options: argparse.Namespace) -> None:
        raise error

    monkeypatch.setattr(generate, "run", fail)
    assert main(["generate", "x"]) == status
    assert capsys.readouterr().err == told


def test_it_can_be_run_as_a_module(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["purgatory-pipeline", "fly"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("purgatory.pipeline", run_name="__main__")
    assert ended.value.code == USAGE_ERROR


def test_without_spark_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert main(["generate", "x"]) == FAILED
    assert "install purgatory's extra `spark`" in capsys.readouterr().err
