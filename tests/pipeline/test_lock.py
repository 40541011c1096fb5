"""A lock, and who holds it."""

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
# No system counts its processes so far.
GONE = 999_999_999


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "checkpoints" / "lock"


def hold(spark: SparkSession, path: Path) -> str:
    """Hold it; what it says of who does."""
    with locked(spark, str(path)):
        return path.read_text()


def test_it_says_who_holds_it_and_goes_with_the_block(spark: SparkSession, path: Path) -> None:
    assert hold(spark, path).startswith(f"{HERE} {os.getpid()} 20")
    assert not path.exists()
    with pytest.raises(KeyError), locked(spark, str(path)):
        raise KeyError
    assert list(path.parent.iterdir()) == []


@pytest.mark.parametrize("process", [GONE, os.getpid()], ids=["gone", "of our number, as in a container"])
def test_what_a_killed_process_of_this_host_has_left_is_taken_over(
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
def test_of_two_that_find_it_left_behind_one_takes_it_over(
    meanwhile: Callable[[Path], None], spark: SparkSession, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path.parent.mkdir()
    path.write_text(f"{HERE} {GONE} 2026-03-01T12:00:00Z")
    looked: list[str] = []

    def look_while_the_rival_acts(spark: SparkSession, at: str) -> str:
        found = read_text(spark, at)
        looked.append(at)
        if looked == [str(path)]:
            meanwhile(path)
        return found

    read_text = files.read_text
    monkeypatch.setattr(files, "read_text", look_while_the_rival_acts)
    with pytest.raises(PipelineError, match="another is at work here"):
        hold(spark, path)
    assert not path.exists() or str(os.getpid()) not in path.read_text().split()


@pytest.mark.parametrize(
    "holder",
    [f"{HERE} {os.getppid()} 2026-03-01T12:00:00Z", f"not-{HERE} {GONE} 2026-03-01T12:00:00Z", ""],
    ids=["alive", "on another host", "about to write who it is"],
)
def test_what_another_holds_is_refused_and_left_to_it(holder: str, spark: SparkSession, path: Path) -> None:
    path.parent.mkdir()
    path.write_text(holder)
    with pytest.raises(PipelineError, match=rf"lock: another .*: {holder or 'unknown'}.*delete the file if"):
        hold(spark, path)
    assert path.read_text() == holder


def test_one_that_is_given_back_at_that_moment_is_refused_all_the_same(
    spark: SparkSession, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "create_text", lambda *_: False)
    with pytest.raises(PipelineError, match="since: unknown"):
        hold(spark, path)


def test_a_lock_that_cannot_be_read_is_an_error_of_its_own(spark: SparkSession, path: Path) -> None:
    path.mkdir(parents=True)
    with pytest.raises(Py4JJavaError):
        hold(spark, path)


def test_a_process_of_another_user_is_not_gone(
    spark: SparkSession, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(process: int, signal: int) -> None:
        raise PermissionError

    path.parent.mkdir()
    path.write_text(f"{HERE} 1 2026-03-01T12:00:00Z")
    monkeypatch.setattr(os, "kill", refuse)
    with pytest.raises(PipelineError, match="another is at work here"):
        hold(spark, path)


def test_where_no_file_can_be_made_nobody_is_blamed_for_it(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(Py4JJavaError, match="file"):
        hold(spark, tmp_path / "file" / "lock")
