"""`python -m purgatory.delayed` lists what is pending, and changes nothing."""

from __future__ import annotations

import asyncio
import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from purgatory.delayed import DelayedMessages
from purgatory.delayed.inspect.command import ProgressLine, main
from purgatory.delayed.inspect.inspection import Amount, inspect
from purgatory.delayed.message import Message
from purgatory.delayed.storage.checkpoint import Checkpoint
from purgatory.delayed.storage.disk import Disk
from purgatory.delayed.storage.frames import Kind
from purgatory.delayed.storage.requests import End, Put, Stored
from purgatory.delayed.storage.store import Store
from purgatory.testing import VirtualTimeLoop

HOUR = 3_600_000
# 2030-03-18 12:00 UTC.
NOON = 1_900_065_600_000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "messages"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    """A store that is open all the time."""
    store = Store(path, 1000, Disk(), NOON)
    yield store
    store.close()


def put(store: Store, *dues: int, payload: bytes = b"12345", soon: bool = False) -> list[int]:
    """Write messages to the log. Returns their tokens."""
    stored = store.commit([Put(due, None, payload, soon) for due in dues])
    return [answer.token for answer in stored if isinstance(answer, Stored)]


def end(store: Store, token: int, due: int, kind: Kind = Kind.CANCELLED) -> None:
    store.commit([End(kind, token, due, named=False)])


def spread(store: Store) -> None:
    store.change(store.mover.move, store.log.seal(), NOON)


def contents(directory: Path) -> dict[Path, tuple[int, bytes]]:
    """When each file of a directory was changed, and what is in it."""
    return {
        path: (path.stat().st_mtime_ns, path.read_bytes() if path.is_file() else b"")
        for path in directory.rglob("*")
    }


def test_what_is_pending_is_counted_by_hour(store: Store, path: Path) -> None:
    put(store, NOON, NOON + 1, NOON + HOUR - 1, NOON + 5 * HOUR)
    spread(store)

    found = inspect(path)
    assert found.hours == {NOON // HOUR: Amount(3, 15), NOON // HOUR + 5: Amount(1, 5)}
    assert found.pending == Amount(4, 20)
    assert found.in_log == Amount(0, 0)
    assert found.slot_files == 3
    assert found.slot == 1.0
    assert found.damaged == []


def test_a_message_that_is_only_in_the_log_is_counted(store: Store, path: Path) -> None:
    put(store, NOON, soon=True)
    spread(store)
    put(store, NOON + HOUR)

    found = inspect(path)
    assert found.pending == found.in_log == Amount(2, 10)
    assert found.segments == 2
    assert found.log_bytes == sum(file.stat().st_size for file in (path / "wal").iterdir()) > 0


@pytest.mark.parametrize("kind", [Kind.CANCELLED, Kind.DELIVERED])
@pytest.mark.parametrize("spread_before", [True, False])
@pytest.mark.parametrize("spread_after", [True, False])
def test_a_message_that_has_ended_is_left_out(
    store: Store, path: Path, kind: Kind, spread_before: bool, spread_after: bool
) -> None:
    first, _ = put(store, NOON, NOON)
    if spread_before:
        spread(store)
    end(store, first, NOON, kind)
    if spread_after:
        spread(store)
        store.change(store.log.remove_oldest, store.log.seal(), ())
    assert inspect(path).pending == Amount(1, 5)


def test_a_message_that_has_moved_on_from_the_log_is_counted_once(store: Store, path: Path) -> None:
    put(store, NOON)
    checkpoint = path / "checkpoint"
    before = checkpoint.read_bytes()
    spread(store)
    # As if the slot files had been written after the checkpoint was read.
    checkpoint.write_bytes(before)
    found = inspect(path)
    assert (found.pending, found.in_log) == (Amount(1, 5), Amount(1, 5))


def test_a_segment_that_the_checkpoint_calls_empty_is_not_read(store: Store, path: Path) -> None:
    put(store, NOON)
    (number,) = (int(file.name) for file in (path / "wal").iterdir())
    Checkpoint(number, number).write(Disk(), path)
    found = inspect(path)
    assert (found.pending, found.segments) == (Amount(), 0)


def test_bytes_are_those_of_payloads_and_of_ids(store: Store, path: Path) -> None:
    store.commit([Put(NOON, "order 7", b"12345", False)])
    assert inspect(path).pending == Amount(1, 12)
    spread(store)
    assert inspect(path).pending == Amount(1, 12)


def test_an_incomplete_end_of_a_file_is_no_damage(store: Store, path: Path) -> None:
    put(store, NOON)
    spread(store)
    put(store, NOON)
    for file in [*(path / "slots").rglob("*"), *(path / "wal").iterdir()]:
        if file.is_file():
            with file.open("ab") as end_of_file:
                end_of_file.write(b"\x1a\xd3half a header")
    found = inspect(path)
    assert (found.pending, found.damaged) == (Amount(2, 10), [])


def test_what_is_damaged_is_said(store: Store, path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(store, NOON, NOON)
    spread(store)
    put(store, NOON, NOON)
    for file in [path / "slots" / str(NOON // HOUR) / str(NOON), path / "wal" / f"{store.log.seal():08}"]:
        content = bytearray(file.read_bytes())
        content[content.index(b"12345")] ^= 1
        file.write_bytes(content)
    found = inspect(path)
    assert found.pending == Amount(2, 10)
    assert found.damaged == [
        f"segment {store.log.seal()} of the log: 34 bytes are damaged",
        f"the file of slot {NOON // 1000}: 34 bytes are damaged",
    ]
    main([str(path)])
    assert "\ndamaged: segment" in capsys.readouterr().out


def test_a_file_that_vanishes_meanwhile_is_left_out(
    store: Store, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(store, NOON, NOON + HOUR)
    spread(store)
    put(store, NOON)
    for file in (path / "slots" / str(NOON // HOUR) / str(NOON), path / "wal" / f"{store.log.seal():08}"):
        monkeypatch.setattr(
            Disk,
            "open_existing",
            lambda disk, opened, file=file, usual=Disk.open_existing: (
                None if opened == file else usual(disk, opened)
            ),
        )
    assert inspect(path).pending == Amount(1, 5)


async def test_it_reads_a_directory_that_is_open_and_changes_nothing_in_it(
    path: Path, virtual_time: VirtualTimeLoop, capsys: pytest.CaptureFixture[str]
) -> None:
    async def deliver(id: str, payload: bytes, due: float) -> None: ...

    def clock() -> float:
        return NOON / 1000 + virtual_time.time()

    async with DelayedMessages(path, deliver, clock=clock) as messages:
        await messages.schedule(b"soon", at=clock() + 5)
        await messages.schedule(b"later", at=clock() + 7200)
        # Time passes when the store's threads have nothing to do.
        await asyncio.sleep(0.1)
        before = contents(path)
        assert main([str(path)]) == 0
        assert main([str(path), "--dead-letters"]) == 0
        assert contents(path) == before
        assert inspect(path).pending == Amount(2, 9)
    assert inspect(path).pending == Amount(2, 9)
    before = contents(path)
    assert main([str(path)]) == 0
    assert contents(path) == before


def test_the_listing(store: Store, path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(store, *[NOON] * 1234)
    spread(store)
    put(store, NOON + 25 * HOUR, -HOUR, 1 << 61)
    store.change(store.dead_letters.add, Message(7, NOON, "order 7", b"tea", 0), "refused")

    assert main([str(path)]) == 0
    size = (path / "wal" / f"{store.log.seal():08}").stat().st_size
    size += (path / "wal" / f"{store.log.seal() - 1:08}").stat().st_size
    assert capsys.readouterr() == (
        f"""\
due in the hour (UTC)               messages             bytes
1969-12-31 23:00                           1                 5
2030-03-18 12:00                       1,234             6,170
2030-03-19 13:00                           1                 5
2305843009210800 s from 1970               1                 5
all                                    1,237             6,185

slot files: 1, each of 1 s
log segments: 2, with {size:,} bytes; messages only there: 3
dead letters: 1
""",
        "",
    )


def test_dead_letters_are_lines_of_json(store: Store, path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store.change(store.dead_letters.add, Message(7, NOON + 1, "order 7", b"tea", 0), "ValueError('no\n tea')")
    store.change(store.dead_letters.add, Message(8, NOON, None, b"\xff", 0), "refused")

    assert main([str(path), "--dead-letters"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [json.loads(line) for line in lines] == [
        {
            "id": "order 7",
            "due_utc": "2030-03-18 12:00:00.001",
            "reason": "ValueError('no\n tea')",
            "payload": "tea",
        },
        {
            "id": f"{8:016x}",
            "due_utc": "2030-03-18 12:00:00.000",
            "reason": "refused",
            "payload_base64": "/w==",
        },
    ]


@pytest.mark.parametrize("option", [[], ["--dead-letters"]])
def test_a_path_that_is_no_directory_is_an_error_in_plain_words(
    path: Path, option: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(path), *option]) == 1
    assert capsys.readouterr() == ("", f"purgatory.delayed: there is no directory {path}\n")


def test_a_directory_of_something_else_is_an_error_in_plain_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(tmp_path)]) == 1
    assert "is no directory of delayed messages: it has no file named format" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("format", '{"version": 2}\n2912290d\n', "has format 2; this release reads 1"),
        ("format", "half a fi", "format is damaged: it has b'half a fi'"),
        ("checkpoint", "1 2\n00000000\n", "checkpoint is damaged: it has b'1 2"),
    ],
)
def test_another_version_or_a_damaged_file_is_an_error_in_plain_words(
    store: Store, path: Path, capsys: pytest.CaptureFixture[str], file: str, content: str, said: str
) -> None:
    (path / file).write_text(content)
    assert main([str(path)]) == 1
    assert said in capsys.readouterr().err


def test_an_unreadable_file_is_an_error_in_plain_words(
    store: Store, path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (path / "checkpoint").unlink()
    (path / "checkpoint").mkdir()
    assert main([str(path)]) == 1
    assert "Is a directory" in capsys.readouterr().err


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_shown_on_a_terminal_when_it_takes_long() -> None:
    terminal, now = Terminal(), 0.0
    progress = ProgressLine(terminal, lambda: now)
    progress(0, 4000)
    progress.close()
    assert terminal.getvalue() == ""
    now = 0.6
    progress(1000, 4000)
    progress(1001, 4000)
    now = 1.2
    progress(3000, 4000)
    shown = "\r1,000 of 4,000 slot files read, 25 %\r3,000 of 4,000 slot files read, 75 %"
    assert terminal.getvalue() == shown
    progress.close()
    progress.close()
    assert terminal.getvalue() == f"{shown}\r\x1b[K"


def test_no_progress_is_shown_to_what_is_no_terminal() -> None:
    stream, now = io.StringIO(), 0.0
    progress = ProgressLine(stream, lambda: now)
    now = 10.0
    progress(1, 2)
    progress.close()
    assert stream.getvalue() == ""


def test_an_interrupt_ends_it_quietly(
    store: Store, path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(path: Path, progress: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("purgatory.delayed.inspect.command.inspect", interrupted)
    assert main([str(path)]) == 130
    assert capsys.readouterr().err == "interrupted\n"


def test_a_reader_that_needs_no_more_ends_it_quietly(store: Store, path: Path) -> None:
    store.change(store.dead_letters.add, Message(8, NOON, None, b"x" * 200_000, 0), "refused")
    command = [sys.executable, "-m", "purgatory.delayed", str(path), "--dead-letters"]
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "wb") as closed:
        done = subprocess.run(command, stdout=closed, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "")


def test_help_has_examples() -> None:
    command = [sys.executable, "-m", "purgatory.delayed", "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "python -m purgatory.delayed messages --dead-letters" in done.stdout
