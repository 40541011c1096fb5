"""A reader that is written from the page about delayed messages, and shares no code with the store."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from zlib import crc32

import pytest

from purgatory.delayed.message import Message
from purgatory.delayed.storage.disk import Disk
from purgatory.delayed.storage.frames import Kind
from purgatory.delayed.storage.requests import End, Put, Stored
from purgatory.delayed.storage.store import Store

NOW = 1_900_000_000_000

# Kind, due time, token, body.
Frame = tuple[int, int, int, bytes]


def frames(salt: int, path: Path) -> Iterator[Frame]:
    data = path.read_bytes()
    at = 0
    while at < len(data):
        magic, length, checksum, kind, due, token = struct.unpack_from("<HIIBqQ", data, at)
        end = at + 27 + length
        if magic == 0xD31A and checksum == crc32(data[at + 10 : end], salt ^ length):
            yield kind, due, token, data[at + 27 : end]
            at = end
        else:
            at += 1


def parse(token: int, body: bytes) -> tuple[str, bytes]:
    """The id and the payload of a message."""
    (length,) = struct.unpack_from("<H", body)
    return body[2 : 2 + length].decode() or f"{token:016x}", body[2 + length :]


def checked_line(path: Path) -> str:
    line, checksum = path.read_text().splitlines()
    assert int(checksum, 16) == crc32(line.encode())
    return line


def pending(store: Path) -> dict[str, tuple[int, bytes]]:
    """What is pending: due time and payload, by id."""
    format = json.loads(checked_line(store / "format"))
    assert format["version"] == 1
    moved, emptied = map(int, checked_line(store / "checkpoint").split())
    messages: dict[int, Frame] = {}
    ended = set()
    for segment in sorted((store / "wal").iterdir()):
        number = int(segment.name)
        if number <= emptied:
            continue
        for frame in frames(format["salt"], segment):
            if frame[0] in (3, 4):
                ended.add(frame[2])
            elif frame[0] == 1 or number > moved:
                messages[frame[2]] = frame
    for slot in (store / "slots").glob("*/*"):
        assert int(slot.parent.name) == int(slot.name) // 3_600_000
        blocks: list[tuple[int, list[Frame]]] = []
        for frame in frames(format["salt"], slot):
            kind, last, first, _ = frame
            if kind == 5:
                blocks = [block for block in blocks if block[0] <= first]
                blocks.append((last, []))
            else:
                blocks[-1][1].append(frame)
                if kind in (1, 2):
                    start = int(slot.name)
                    assert start <= frame[1] < start + format["slot_ms"]
        for _, block in blocks:
            for frame in block:
                if frame[0] in (1, 2):
                    messages[frame[2]] = frame
                else:
                    assert frame[0] in (3, 4)
                    ended.add(frame[2])
    return {
        parse(token, body)[0]: (due, parse(token, body)[1])
        for _, due, token, body in messages.values()
        if token not in ended
    }


def put(store: Store, due: int, id: str | None, soon: bool = False) -> Stored:
    [answer] = store.commit([Put(due, id, f"payload of {id}".encode(), soon)])
    assert isinstance(answer, Stored)
    return answer


def test_another_reader_finds_what_is_pending(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path, 1000, Disk(), NOW)
    soon, later = NOW + 5_000, NOW + 60_000
    put(store, soon, "soon", soon=True)
    put(store, later, "moved")
    put(store, later, None)
    gone = put(store, later, "cancelled")
    done = put(store, soon, "delivered", soon=True)
    store.change(store.mover.move, store.log.seal(), NOW)
    store.commit([End(Kind.CANCELLED, gone.token, later, named=True, check=True)])
    store.commit([End(Kind.DELIVERED, done.token, soon, named=True)])
    put(store, later + 7_200_000, "in the log")
    expected = {"soon": soon, "moved": later, "in the log": later + 7_200_000}

    def found() -> dict[str, int]:
        return {id: due for id, (due, payload) in pending(tmp_path).items() if payload != b"payload of None"}

    assert found() == expected
    assert len(pending(tmp_path)) == 4
    assert pending(tmp_path)["moved"] == (later, b"payload of moved")
    store.change(store.mover.move, store.log.seal(), NOW)
    assert found() == expected
    # As a crash leaves it.
    store.close()
    Store(tmp_path, 1000, Disk(), NOW).close()
    assert found() == expected
    # A long log moves to the slot files.
    monkeypatch.setattr("purgatory.delayed.storage.store._LONG", 0)
    Store(tmp_path, 1000, Disk(), NOW).close()
    assert found() == expected
    assert list((tmp_path / "wal").iterdir()) == []


def test_another_reader_forgets_the_part_of_a_block_that_a_crash_has_left(tmp_path: Path) -> None:
    store = Store(tmp_path, 1000, Disk(), NOW)
    put(store, NOW + 60_000, "first")
    store.change(store.mover.move, store.log.seal(), NOW)
    put(store, NOW + 60_000, "second")
    put(store, NOW + 60_000, "third")
    (before,) = (tmp_path / "slots").glob("*/*")
    whole = before.stat().st_size
    checkpoint = (tmp_path / "checkpoint").read_bytes()
    store.change(store.mover.move, store.log.seal(), NOW)
    with before.open("r+b") as slot:
        slot.truncate((whole + before.stat().st_size) // 2)
    (tmp_path / "checkpoint").write_bytes(checkpoint)
    store.close()
    store = Store(tmp_path, 1000, Disk(), NOW)
    store.change(store.mover.move, store.log.seal(), NOW)
    store.close()
    assert set(pending(tmp_path)) == {"first", "second", "third"}


def test_another_reader_finds_dead_letters(tmp_path: Path) -> None:
    store = Store(tmp_path, 1000, Disk(), NOW)
    store.change(store.dead_letters.add, Message(7, NOW, "order 7", b"tea", 0), "refused")
    store.close()
    salt = json.loads(checked_line(tmp_path / "format"))["salt"]
    [(kind, due, token, body)] = frames(salt, tmp_path / "dead-letters")
    (length,) = struct.unpack_from("<H", body)
    assert (kind, due, token, body[2 : 2 + length]) == (6, NOW, 7, b"refused")
    assert parse(token, body[2 + length :]) == ("order 7", b"tea")
