"""`DelayedMessages.pending` lists what is still to come, piece by piece."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from purgatory.delayed import DelayedMessages, PendingMessage, Receipt
from purgatory.testing import VirtualTimeLoop
from tests.delayed.service import open_store

START = 1_900_000_000.0


async def deliver(id: str, payload: bytes, due: float) -> None: ...


@pytest.fixture
def clock(virtual_time: VirtualTimeLoop) -> Callable[[], float]:
    return lambda: START + virtual_time.time()


async def listed(messages: DelayedMessages) -> dict[Receipt, bytes]:
    found = [message async for message in messages.pending()]
    assert all(isinstance(message, PendingMessage) for message in found)
    listing = {message.receipt: message.payload for message in found}
    assert len(listing) == len(found)
    return listing


async def test_messages_of_the_log_and_of_the_slot_files_are_listed(
    tmp_path: Path, clock: Callable[[], float]
) -> None:
    expected: dict[Receipt, bytes] = {}
    async with DelayedMessages(tmp_path, deliver, clock=clock) as messages:
        for number, seconds in enumerate((2, 15, 3_600, 3_600.5, 86_400)):
            receipt = await messages.schedule(b"%d" % number, at=clock() + seconds, id=f"id {number}")
            expected[receipt] = b"%d" % number
        assert await listed(messages) == expected
    async with DelayedMessages(tmp_path, deliver, clock=clock) as messages:
        assert await listed(messages) == expected


async def test_messages_of_several_segments_are_listed(tmp_path: Path, clock: Callable[[], float]) -> None:
    expected: dict[Receipt, bytes] = {}
    async with DelayedMessages(tmp_path, deliver, clock=clock) as messages:
        for payload in (b"first", b"second", b"third"):
            expected[await messages.schedule(payload, at=clock() + 20)] = payload
            # A listing ends a segment of the log.
            assert await listed(messages) == expected


async def test_cancelled_messages_are_not_listed(tmp_path: Path, clock: Callable[[], float]) -> None:
    async with DelayedMessages(tmp_path, deliver, clock=clock) as messages:
        soon, later, kept = [await messages.schedule(b"", at=clock() + seconds) for seconds in (5, 60, 70)]
        assert await messages.cancel(soon)
        assert await messages.cancel(later)
        assert await listed(messages) == {kept: b""}


@pytest.mark.parametrize(("count", "size"), [(2_500, 10), (40, 1_000_000)])
async def test_it_holds_some_messages_at_a_time(
    tmp_path: Path, clock: Callable[[], float], count: int, size: int
) -> None:
    async with DelayedMessages(tmp_path, deliver, clock=clock) as messages:
        await asyncio.gather(*(messages.schedule(b"x" * size, at=START + 600) for _ in range(count)))
        store = open_store(messages)
        pieces = [len(piece) async for piece in store.loader.pieces(store.store.pending())]
    assert sum(pieces) == count
    assert len(pieces) > 2
    assert max(pieces) * size <= 9_000_000


async def test_a_message_that_is_delivered_meanwhile_is_left_out(
    tmp_path: Path, clock: Callable[[], float]
) -> None:
    async with DelayedMessages(tmp_path, deliver, clock=clock) as messages:
        await asyncio.gather(*(messages.schedule(b"", at=START + 600) for _ in range(1_001)))
        await messages.schedule(b"", at=START + 1_200)
        found = 0
        async for _ in messages.pending():
            found += 1
            if found == 1:
                for file in (tmp_path / "slots").rglob("*200000"):
                    file.unlink()
        assert found == 1_001


async def test_a_segment_that_is_removed_meanwhile_is_left_out(
    tmp_path: Path, clock: Callable[[], float]
) -> None:
    async with DelayedMessages(tmp_path, deliver, clock=clock) as messages:
        await asyncio.gather(*(messages.schedule(b"", at=clock() + 20) for _ in range(1_000)))
        assert len(await listed(messages)) == 1_000
        await messages.schedule(b"", at=clock() + 20)
        found = 0
        async for _ in messages.pending():
            found += 1
            if found == 1:
                max((tmp_path / "wal").iterdir()).unlink()
        assert found == 1_000


async def test_a_segment_that_goes_meanwhile_is_left_out(tmp_path: Path, clock: Callable[[], float]) -> None:
    async with DelayedMessages(tmp_path, deliver, clock=clock) as messages:
        await asyncio.gather(*(messages.schedule(b"", at=START + 5) for _ in range(1_000)))
        # It ends the segment.
        assert len(await listed(messages)) == 1_000
        await messages.schedule(b"", at=START + 5)
        found = 0
        async for _ in messages.pending():
            found += 1
            if found == 1:
                max((tmp_path / "wal").iterdir()).unlink()
        assert found == 1_000


async def test_damage_is_logged_and_left_out(
    tmp_path: Path, clock: Callable[[], float], caplog: pytest.LogCaptureFixture
) -> None:
    async with DelayedMessages(tmp_path, deliver, clock=clock) as messages:
        for payload in (b"first", b"second"):
            await messages.schedule(payload, at=START + 600)
        assert len(await listed(messages)) == 2
        (file,) = (path for path in (tmp_path / "slots").rglob("*") if path.is_file())
        file.write_bytes(file.read_bytes().replace(b"first", b"fIrst"))
        assert list((await listed(messages)).values()) == [b"second"]
    assert "are damaged" in caplog.text
