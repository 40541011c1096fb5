"""A lock file, its holder, and its takeover."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from purgatory.pipeline import files
from purgatory.pipeline.errors import PipelineError
from purgatory.pipeline.lock import locked

HERE = socket.gethostname()
# Larger than any process id.
GONE = 999_999_999


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "checkpoints" / "lock"


def hold(spark: SparkSession, path: Path) -> str:
    """Hold the lock for a moment. Returns the text of its file."""
    with locked(spark, str(path)):
        return path.read_text()


def test_the_lock_names_its_holder_and_is_released_with_the_block(spark: SparkSession, path: Path) -> None:
    assert hold(spark, path).startswith(f"{HERE} {os.getpid()} 20")
    assert not path.exists()
    with pytest.raises(KeyError), locked(spark, str(path)):
        raise KeyError
    assert list(path.parent.iterdir()) == []


@pytest.mark.parametrize("process", [GONE, os.getpid()], ids=["ended", "with our own id, as in a container"])
def test_the_lock_of_a_killed_process_of_this_host_is_taken_over(
    process: int, spark: SparkSession, path: Path
) -> None:
    path.parent.mkdir()
    path.write_text(f"{HERE} {process} 2026-03-01T12:00:00Z")
    assert hold(spark, path).startswith(f"{HERE} {os.getpid()} ")
    assert not path.exists()


def taken_by_a_rival(path: Path) -> None:
    path.write_text(f"{HERE} {os.getppid()} 2026-03-01T12:00:01Z")


def claimed_by_a_rival(path: Path) -> None:
    path.with_name(f"lock-of-{HERE}-{GONE}-2026-03-01T12-00-00Z").touch()


@pytest.mark.parametrize("meanwhile", [taken_by_a_rival, claimed_by_a_rival, Path.unlink])
def test_of_two_processes_that_find_an_abandoned_lock_one_takes_it_over(
    meanwhile: Callable[[Path], None], spark: SparkSession, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path.parent.mkdir()
    path.write_text(f"{HERE} {GONE} 2026-03-01T12:00:00Z")
    reads: list[str] = []

    def read_while_the_rival_acts(spark: SparkSession, at: str) -> str:
        text = read_text(spark, at)
        reads.append(at)
        if reads == [str(path)]:
            meanwhile(path)
        return text

    read_text = files.read_text
    monkeypatch.setattr(files, "read_text", read_while_the_rival_acts)
    with pytest.raises(PipelineError, match="another process holds this lock"):
        hold(spark, path)
    assert not path.exists() or str(os.getpid()) not in path.read_text().split()


@pytest.mark.parametrize(
    "holder",
    [f"{HERE} {os.getppid()} 2026-03-01T12:00:00Z", f"not-{HERE} {GONE} 2026-03-01T12:00:00Z", ""],
    ids=["alive", "on another host", "not yet written"],
)
def test_the_lock_of_another_process_is_refused_and_unchanged(
    holder: str, spark: SparkSession, path: Path
) -> None:
    path.parent.mkdir()
    path.write_text(holder)
    with pytest.raises(PipelineError, match=rf"lock: another .*: {holder or 'unknown'}.*delete the file if"):
        hold(spark, path)
    assert path.read_text() == holder


def test_a_lock_that_is_released_at_that_moment_is_refused(
    spark: SparkSession, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "create_text", lambda *_: False)
    with pytest.raises(PipelineError, match="since: unknown"):
        hold(spark, path)


def test_a_lock_that_cannot_be_read_is_an_error(spark: SparkSession, path: Path) -> None:
    path.mkdir(parents=True)
    with pytest.raises(Py4JJavaError):
        hold(spark, path)


def test_a_process_of_another_user_is_alive(
    spark: SparkSession, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(process: int, signal: int) -> None:
        raise PermissionError

    path.parent.mkdir()
    path.write_text(f"{HERE} 1 2026-03-01T12:00:00Z")
    monkeypatch.setattr(os, "kill", refuse)
    with pytest.raises(PipelineError, match="another process holds this lock"):
        hold(spark, path)


def test_an_error_of_the_file_system_is_raised_unchanged(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Py4JJavaError, match="file"):
        hold(spark, tmp_path / "file" / "lock")
