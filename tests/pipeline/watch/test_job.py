"""The command `watch`, on journals that grow."""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest
from py4j.protocol import Py4JJavaError

from purgatory.journal.schema import GAPS, SCHEMAS
from purgatory.pipeline.command import INTERRUPTED
from purgatory.pipeline.commands import parser
from purgatory.pipeline.errors import PipelineError
from purgatory.pipeline.jobs import watch
from purgatory.pipeline.schemas import OPERATIONS_TABLE
from purgatory.pipeline.spark import Spark
from purgatory.pipeline.watch import stream
from purgatory.pipeline.watch.monitor import HEADER, Monitor, Window
from purgatory.pipeline.watch.notice import Notice
from purgatory.pipeline.watch.stream import read, watched
from purgatory.pipeline.watch.windows import Windows
from tests.pipeline.journals import NOON, ROWS, Row, add_segment, operation
from tests.pipeline.settings import NO_SPARK, SETTINGS

# Long ago, so that no row is in the future. What `--since` looks at is the age of a file.
BEGIN: Final = NOON


def ended(second: float, count: int = 1, expired: int = 0, **changed: Any) -> list[Row]:
    """Operations that ended this many seconds after BEGIN."""
    plain = operation(started=BEGIN + timedelta(seconds=second), waited_us=0, timeout_us=None)
    outcomes = [{"outcome": "expired" if number < expired else "completed"} for number in range(count)]
    return [plain | {"lateness_us": None} | outcome | changed for outcome in outcomes]


def options(journal: Path, *arguments: str) -> argparse.Namespace:
    return parser().parse_args(["watch", str(journal), *arguments])


def at(second: int) -> str:
    return f"{BEGIN + timedelta(seconds=second):%Y-%m-%d %H:%M:%S}"


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """A journal without segments."""
    for table in SCHEMAS:
        (tmp_path / "journal" / table).mkdir(parents=True)
    return tmp_path / "journal"


@pytest.fixture
def watching(monkeypatch: pytest.MonkeyPatch) -> Callable[[list[str]], None]:
    """Says which notices there are. Nothing is read, and Spark is not needed."""

    def say(events: list[str]) -> None:
        monkeypatch.setattr(watch, "watched", lambda *_, **__: (notice(event) for event in events))

    return say


def test_existing_segments_are_reported_with_their_faults(
    spark: Spark, journal: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(15):
        add_segment(
            journal, f"{number}", ended(number * 10 + 1, count=200, expired=100 if number == 13 else 0)
        )
    in_years = datetime.now(UTC) + timedelta(days=900)
    add_segment(journal, "wrong", [operation(tries=0), operation(started=in_years)])
    (journal / "operations" / "broken.parquet").write_bytes(b"no Parquet")
    (journal / "operations" / ".5.parquet.unfinished").write_bytes(b"")
    gap = ROWS[GAPS] | {"began": BEGIN, "ended": BEGIN + timedelta(seconds=1)}
    add_segment(journal, "lost", [gap, gap | {"lost_checks": -1}], table=GAPS)
    old = add_segment(journal, "old", ended(50, kind="Old"))
    hours_ago = time.time() - 7200
    os.utime(old, (hours_ago, hours_ago))

    status = watch.run(spark, options(journal, "--once", "--since", "1.5h", "--lateness", "500ms"))

    assert status == watch.WARNED
    header, *lines = capsys.readouterr().out.splitlines()
    assert header == HEADER
    windows = [line for line in lines if line[0] == "2"]
    assert [line[:19] for line in windows] == [at(10 * number) for number in range(15)]
    assert (
        windows[1] == f"{at(10)}         200    0.0 %      0 µs      0 µs                1.00  Fetch in fetch"
    )
    assert [line for line in windows if "so far" in line] == windows[-1:]
    notes = sorted(line for line in lines if line[0] != "2")
    assert [note.split()[0] for note in notes] == ["INCOMPLETE", "REFUSED", "REFUSED", "WARNING"]
    assert notes[0] == f"INCOMPLETE a lost 3 operations and 0 checks from {at(0)} to {at(1)}"
    assert notes[1].startswith("REFUSED 0 unreadable files and 1 row, such as: lost_checks is negative (/")
    assert notes[2].startswith("REFUSED 1 unreadable file and 2 rows, such as: it ended in the future (/")
    assert notes[3].startswith(f"WARNING {at(130)} Fetch in fetch: 50.0 % of 200 expired")


def test_open_windows_are_reported_at_the_end(
    journal: Path,
    watching: Callable[[list[str]], None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    watching([])
    start = round(BEGIN.timestamp() * 1e6)
    window = Window(
        start=start,
        end=start + 10_000_000,
        purgatory="fetch",
        kind="Fetch",
        operations=7,
        expired=0,
        wait_p50_us=1.0,
        wait_p99_us=1.0,
        lateness_p99_us=1.0,
        tries_per_operation=1.0,
        latest=start + 5_000_000,
    )

    def update(spark: Spark, journal: str, monitor: Monitor, **_: object) -> Iterator[Notice]:
        yield from monitor.update([window])

    monkeypatch.setattr(watch, "watched", update)
    assert watch.run(NO_SPARK, options(journal)) == 0
    _, line = capsys.readouterr().out.splitlines()
    assert line.startswith(f"{at(0)}           7 ")
    assert line.endswith("Fetch in fetch, so far")


def notice(event: str) -> Notice:
    return Notice(event, f"what is {event}", {"number": 1})


@pytest.mark.parametrize(
    ("events", "status"),
    [
        (["window"], 0),
        (["window", "warning", "recovered", "late"], watch.WARNED),
        (["shifted", "recovered"], 0),
        (["incomplete"], watch.LACKING),
        (["refused"], watch.LACKING),
        (["late", "window"], watch.LACKING),
    ],
    ids=str,
)
def test_the_exit_status_says_what_has_happened(
    events: list[str], status: int, journal: Path, watching: Callable[[list[str]], None]
) -> None:
    watching(events)
    assert watch.run(NO_SPARK, options(journal)) == status


def test_it_can_end_with_the_first_warning(
    journal: Path, watching: Callable[[list[str]], None], capsys: pytest.CaptureFixture[str]
) -> None:
    watching(["window", "warning", "window"])
    assert watch.run(NO_SPARK, options(journal, "--until-warning")) == watch.WARNED
    assert capsys.readouterr().out.splitlines()[1:] == ["what is window", "what is warning"]


def test_with_json_each_line_is_an_object(
    journal: Path, watching: Callable[[list[str]], None], capsys: pytest.CaptureFixture[str]
) -> None:
    watching(["window", "late"])
    watch.run(NO_SPARK, options(journal, "--json"))
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == [
        {"event": "window", "number": 1},
        {"event": "late", "number": 1},
    ]


def test_it_follows_a_journal_segment_by_segment(
    spark: Spark, journal: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    windows = Windows(1_000_000)
    monkeypatch.setattr(stream, "Windows", lambda length: windows)
    times = {"window_ms": 1_000, "lateness_ms": 300, "every_ms": 100, "since_ms": 600_000}
    with closing(watched(spark, str(journal), Monitor(300_000), **times)) as lines:
        closed = (line for line in map(str, lines) if "so far" not in line)
        add_segment(journal, "1", ended(0, count=2))
        add_segment(journal, "2", ended(2))
        assert next(closed).startswith(f"{at(0)}           2 ")
        add_segment(journal, "3", ended(2.5, count=4))
        add_segment(journal, "4", ended(10))
        assert next(closed).startswith(f"{at(2)}           5 ")
        (journal / "operations" / "5.parquet").write_bytes(b"broken")
        assert next(closed).startswith("REFUSED 1 unreadable file ")
        add_segment(journal, "6", [*ended(1, count=3), *ended(5, kind="Other")])
        assert next(closed).startswith(f"LATE 4 operations that ended before {at(9)}")
        add_segment(journal, "7", ended(12))
        assert next(closed).startswith(f"{at(10)}           1 ")
        # The next line is the open window.
        assert str(next(lines)).startswith(f"{at(12)}           1 ")

        # No count of a closed window is kept.
        assert repr(windows) == "<Windows of 1 s: 1 counts>"


def test_an_error_of_a_worker_is_raised(spark: Spark, journal: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add_segment(journal, "1", ended(0))
    monkeypatch.setattr(Windows, "query", property(lambda windows: "SELECT what_is_not_there FROM rows"))
    with pytest.raises(Py4JJavaError, match="what_is_not_there"):
        watch.run(spark, options(journal))


def test_a_row_that_ended_in_the_future_is_refused(journal: Path) -> None:
    path = add_segment(journal, "1", [*ended(0), *ended(9), operation(tries=0)])
    until = round(BEGIN.timestamp() * 1e6) + 5_000_000
    (found,) = read(OPERATIONS_TABLE, Windows(1_000_000).query, until, [str(path)])
    assert (found.valid, found.files, found.rows) == (1, 0, 2)
    assert found.examples == {
        f"{reason} ({path})" for reason in ("tries is below 1", "it ended in the future")
    }
    both = found + found
    assert (both.valid, both.rows, both.found.num_rows) == (2, 4, 2)


def test_a_segment_that_is_deleted_after_it_was_listed_is_passed_over(journal: Path) -> None:
    path = add_segment(journal, "1", ended(0, count=3))
    query = Windows(1_000_000).query
    (found,) = read(OPERATIONS_TABLE, query, 1 << 62, [str(path)])
    assert (found.valid, found.found.num_rows) == (3, 1)
    path.write_bytes(b"broken")
    (broken,) = read(OPERATIONS_TABLE, query, 1 << 62, [str(path)])
    assert (broken.valid, broken.files, broken.rows) == (0, 1, 0)
    assert [example.partition(":")[0] for example in broken.examples] == ["unreadable"]
    path.unlink()
    (nothing,) = read(OPERATIONS_TABLE, query, 1 << 62, [str(path)])
    assert (nothing.valid, nothing.files, nothing.found.num_rows) == (0, 0, 0)
    assert nothing.found.schema == found.found.schema


def test_a_directory_that_is_not_a_journal_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match="not a journal, it has no directory 'operations'"):
        watch.check(options(tmp_path))


@pytest.mark.parametrize(
    ("text", "length"), [("10s", 10_000), ("1.5min", 90_000), ("20ms", 20), ("2d", 172_800_000)]
)
def test_times_have_units(text: str, length: int) -> None:
    assert options(Path("x"), "--window", text).window == length


@pytest.mark.parametrize("text", ["10", "s", "0s", "-1s", "0.1ms", "1 fortnight"])
def test_an_invalid_time_is_refused(text: str) -> None:
    with pytest.raises(SystemExit):
        options(Path("x"), f"--window={text}")


@pytest.mark.long
@pytest.mark.real_time
def test_ctrl_c_ends_it_and_reports_the_open_windows(journal: Path) -> None:
    add_segment(journal, "1", ended(0))
    add_segment(journal, "2", ended(60))
    command = [sys.executable, "-m", "purgatory.pipeline", "watch", str(journal)]
    more = ["--every", "100ms", "--master", "local[1]", "--memory", "1g"]
    settings = [f"--conf={name}={value}" for name, value in SETTINGS.items()]
    with subprocess.Popen(
        [*command, *more, *settings],
        start_new_session=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline().rstrip() == HEADER
        assert process.stdout.readline().startswith(at(0))
        # To the whole process group, as a terminal does.
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert out.startswith(at(60))
    assert out.endswith("Fetch in fetch, so far\n")
    assert err.splitlines()[-1] == "interrupted; run the command again to continue"
    assert "Traceback" not in err
    assert process.returncode == INTERRUPTED
