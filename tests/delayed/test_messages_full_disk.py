"""A disk without room for a while, while messages are scheduled and delivered."""

from __future__ import annotations

import asyncio

import pytest

from tests.delayed.service import BEGIN, Service
from tests.delayed.storage.simulated_disk import NOTHING


async def test_a_full_disk_loses_nothing_and_the_store_goes_on_once_there_is_room(service: Service) -> None:
    async with service.store() as delayed:
        for number in range(40):
            await delayed.schedule(b"%d" % number, at=BEGIN + number)
        service.disk.capacity = service.disk.used + 10
        for _ in range(3):
            with pytest.raises(OSError, match="No space"):
                await delayed.schedule(b"refused", at=BEGIN + 1)
        await asyncio.sleep(15.5)
        assert service.payloads == [b"%d" % number for number in range(16)]
        service.disk.capacity = None
        await delayed.schedule(b"accepted", at=BEGIN + 50)
        await asyncio.sleep(40)
        assert service.payloads == [*(b"%d" % number for number in range(40)), b"accepted"]
    assert service.files("slots") == []
    assert service.files("wal") == []


async def test_a_store_that_has_filled_the_disk_itself_makes_room_by_its_deliveries(service: Service) -> None:
    async with service.store() as delayed:
        for number in range(40):
            await delayed.schedule(bytes(100) + b"%d" % number, at=BEGIN + 30 + number, id=str(number))
        await asyncio.sleep(11)
        # These are in the log alone, together with what was cancelled.
        for number in range(40, 50):
            await delayed.schedule(bytes(100) + b"%d" % number, at=BEGIN + 30 + number)
        cancelled = await delayed.find("25")
        assert cancelled is not None
        assert await delayed.cancel(cancelled)
        # There is room for a cancellation, and not for a message.
        service.disk.capacity = service.disk.used + 60
        await asyncio.sleep(8.5)
        waiting = await delayed.find("5")
        assert waiting is not None
        assert await delayed.cancel(waiting)
        await asyncio.sleep(61)
        expected = [number for number in range(50) if number not in (5, 25)]
        assert [int(payload[100:]) for payload in service.payloads] == expected
        assert all(0 <= delivered.late < 0.002 for delivered in service.delivered)
    assert service.files("slots") == []


async def test_a_message_that_waits_in_the_log_of_a_full_disk_is_not_cancelled_in_vain(
    service: Service,
) -> None:
    async with service.store() as delayed:
        receipt = await delayed.schedule(b"payload", at=BEGIN + 25)
        service.disk.capacity = service.disk.used
        await asyncio.sleep(11)
        with pytest.raises(OSError, match="No space"):
            await delayed.cancel(receipt)
        service.disk.capacity = None
        await asyncio.sleep(20)
    assert service.payloads == [b"payload"]


async def test_a_store_that_is_closed_and_opened_on_a_full_disk_loses_nothing(
    service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    async with service.store() as delayed:
        for number in range(1, 41):
            await delayed.schedule(b"%d" % number, at=BEGIN + number)
        service.disk.capacity = service.disk.used
    assert "messages stay in the log: [Errno 28]" in caplog.text
    with pytest.raises(OSError, match="No space"):
        async with service.store():
            pass
    service.disk.capacity = None
    async with service.store():
        await asyncio.sleep(50)
    assert service.payloads == [b"%d" % number for number in range(1, 41)]


async def test_what_was_delivered_while_the_disk_was_full_is_not_delivered_again(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Two notes in each commit are old ones.
    monkeypatch.setattr("purgatory.delayed.committer._REQUESTS", 20)
    async with service.store() as delayed:
        await delayed.schedule(b"payload", at=BEGIN + 1, id="the id")
        for _ in range(4):
            await delayed.schedule(b"unnamed", at=BEGIN + 1)
        service.disk.capacity = 0
        await asyncio.sleep(2)
        with pytest.raises(OSError, match="No space"):
            await delayed.schedule(b"another", at=BEGIN + 100, id="the id")
        service.disk.capacity = None
        await asyncio.sleep(1.5)
        # The power goes off.
        service.disk = service.disk.after_power_cut(NOTHING)
    async with service.store() as delayed:
        await delayed.schedule(b"another", at=BEGIN + 5, id="the id")
        await asyncio.sleep(10)
    assert sorted(service.payloads) == [b"another", b"payload"] + [b"unnamed"] * 4


async def test_a_store_is_closed_while_what_was_delivered_cannot_be_written(service: Service) -> None:
    async with service.store() as delayed:
        for number in range(3):
            await delayed.schedule(b"%d" % number, at=BEGIN + 1)
        service.disk.capacity = 0
        await asyncio.sleep(2)
    assert len(service.payloads) == 3


async def test_what_is_pending_is_listed_on_a_full_disk(service: Service) -> None:
    async with service.store() as delayed:
        await delayed.schedule(b"in a slot file", at=BEGIN + 60)
        await asyncio.sleep(11)
        for number in range(3):
            await delayed.schedule(b"%d" % number, at=BEGIN + 70 + number)
        service.disk.capacity = service.disk.used
        expected = {b"in a slot file", b"0", b"1", b"2"}
        for _ in range(2):
            assert {message.payload async for message in delayed.pending()} == expected


async def test_messages_that_move_on_when_there_is_room_again_are_listed(service: Service) -> None:
    async with service.store() as delayed:
        # Longer than one piece of a listing, so that the rest is read later.
        await asyncio.gather(*(delayed.schedule(b"%d" % number, at=BEGIN + 60) for number in range(1_500)))
        service.disk.capacity = service.disk.used
        listing = delayed.pending()
        found = [await anext(listing)]
        service.disk.capacity = None
        await asyncio.sleep(11)
        assert service.files("wal") == []
        found += [message async for message in listing]
    assert sorted(int(message.payload) for message in found) == list(range(1_500))
