"""A disk that fails for a while or is damaged, while messages are scheduled and delivered."""

from __future__ import annotations

import asyncio
import errno
import threading

import pytest

from purgatory.delayed.storage.agenda import Found
from purgatory.delayed.storage.slots import SlotFiles
from tests.delayed.service import BEGIN, PATH, Delivered, Service, open_store
from tests.delayed.storage.simulated_disk import EVERYTHING, NOTHING


async def test_a_segment_that_cannot_be_closed_leaves_nobody_waiting(service: Service) -> None:
    async with service.store() as delayed:
        # The first turn is over, and the next one is far.
        await asyncio.sleep(1)
        await delayed.schedule(b"first", at=BEGIN + 3_600)
        service.disk.fail("close", thread="log")
        scheduled = asyncio.create_task(delayed.schedule(b"second", at=BEGIN + 3_600))
        await asyncio.sleep(0)
        with pytest.raises(OSError, match="Input/output error"):
            await open_store(delayed).committer.seal()
        await scheduled
        await delayed.schedule(b"third", at=BEGIN + 3_600)
        found = {message.payload async for message in delayed.pending()}
        assert found == {b"first", b"second", b"third"}


async def test_what_cannot_be_removed_is_removed_later_and_in_order(service: Service) -> None:
    async with service.store() as delayed:
        # Each second a segment, which ends at a turn at the latest.
        receipt = await delayed.schedule(b"cancelled", at=BEGIN + 5)
        await asyncio.sleep(0)
        await open_store(delayed).committer.seal()
        assert await delayed.cancel(receipt)
        await open_store(delayed).committer.seal()
        await delayed.schedule(b"late", at=BEGIN + 30)
        service.disk.fail("remove", path=PATH / "wal", times=2)
        await asyncio.sleep(11)
        assert len(service.files("wal")) >= 2
        # The segment with the cancellation is there as long as that of the message.
        service.disk = service.disk.after_power_cut(NOTHING)
    async with service.store():
        for directory in ("wal", "slots"):
            service.disk.fail("remove", path=PATH / directory)
        await asyncio.sleep(60)
        assert service.files("slots") == []
        assert service.files("wal") == []
    assert service.payloads == [b"late"]


async def test_what_is_overdue_after_a_crash_does_not_wait_until_the_whole_log_has_moved(
    service: Service,
) -> None:
    async with service.store() as delayed:
        await asyncio.sleep(1)
        await delayed.schedule(b"overdue", at=BEGIN + 60)
        await delayed.schedule(b"later", at=BEGIN + 600)
        crashed = service.disk.after_power_cut(EVERYTHING)
    await asyncio.sleep(100)
    service.disk = crashed
    crashed.fail("rename", path=PATH / "checkpoint", times=10)
    async with service.store():
        await asyncio.sleep(5)
        assert service.payloads == [b"overdue"]
        await asyncio.sleep(600)
    assert service.payloads == [b"overdue", b"later"]


async def test_a_message_that_cannot_be_read_is_read_later_and_others_do_not_wait(service: Service) -> None:
    async with service.store() as delayed:
        for number in range(1, 4):
            await delayed.schedule(b"%d" % number, at=BEGIN + 1 + number)
        # Behind the first turn, which reads, too.
        await asyncio.sleep(0.1)
        service.disk.fail("read", thread="reader")
        await asyncio.sleep(9)
        assert len(service.payloads) == 2
        await asyncio.sleep(9)
        assert sorted(service.payloads) == [b"1", b"2", b"3"]


@pytest.mark.parametrize("failures", [0, 1])
async def test_a_message_that_cannot_be_read_for_an_hour_is_lost_and_keeps_no_file(
    service: Service, caplog: pytest.LogCaptureFixture, failures: int
) -> None:
    async def handle(attempt: Delivered) -> None:
        if attempt.payload == b"payload":
            raise ValueError

    def fail(operation: str) -> None:
        if operation == "read" and "reader" in threading.current_thread().name:
            raise OSError(errno.EIO, "cannot be read")

    service.handle = handle
    async with service.store() as delayed:
        if failures:
            await delayed.schedule(b"payload", at=BEGIN)
            await asyncio.sleep(0.1)
        else:
            await delayed.schedule(b"payload", at=BEGIN + 5)
        service.disk.watch = fail
        await asyncio.sleep(3_600)
        assert len(service.files("wal")) == 1
        await asyncio.sleep(20)
        assert f"a message due at {int(BEGIN + 5 * (not failures)) * 1000} was lost" in caplog.text
        assert service.files("wal") == []
        assert delayed.statistics().retrying == 0


async def test_a_slot_that_cannot_be_read_is_read_later_and_others_do_not_wait(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with service.store() as delayed:
        receipts = [await delayed.schedule(b"%d" % number, at=BEGIN + 25 + number) for number in range(3)]
        await asyncio.sleep(9)
        await asyncio.sleep(0.9)
        find = SlotFiles.find

        def fail_once(slots: SlotFiles, slot: int) -> Found:
            monkeypatch.setattr(SlotFiles, "find", find)
            raise OSError(errno.EIO, "cannot be read")

        monkeypatch.setattr(SlotFiles, "find", fail_once)
        await asyncio.sleep(1)
        with pytest.raises(OSError, match="cannot be read"):
            await delayed.cancel(receipts[0])
        assert await delayed.cancel(receipts[1])
        await asyncio.sleep(30)
    assert service.payloads == [b"0", b"2"]


async def test_a_damaged_slot_file_loses_what_is_damaged_and_nothing_else(
    service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    async with service.store() as delayed:
        for number in range(5):
            await delayed.schedule(b"payload %d" % number, at=BEGIN + 60)
            await delayed.schedule(b"another %d" % number, at=BEGIN + 61)
    slot = f"{int(BEGIN + 60) * 1000}"
    [hour] = service.disk.names(PATH / "slots")
    data = service.disk.content(PATH / "slots" / hour / slot).data
    data[data.index(b"payload 2") + 3] ^= 0x40
    async with service.store():
        await asyncio.sleep(70)
    assert sorted(service.payloads) == sorted(
        [b"payload %d" % number for number in range(5) if number != 2]
        + [b"another %d" % number for number in range(5)]
    )
    assert f"the file of slot {int(BEGIN + 60)}: " in caplog.text
    assert "bytes from byte" in caplog.text
    assert service.files("slots") == []


async def test_a_message_that_is_damaged_after_it_was_found_is_lost_alone_and_loudly(
    service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    async with service.store() as delayed:
        await asyncio.sleep(0.1)
        for number in range(3):
            await delayed.schedule(b"payload %d" % number, at=BEGIN + 10)
        [name] = service.files("wal")
        data = service.disk.content(PATH / "wal" / name).data
        data[data.index(b"payload 1")] ^= 1
        await asyncio.sleep(25)
    assert service.payloads == [b"payload 0", b"payload 2"]
    assert "was lost: its frame is damaged" in caplog.text
    assert service.files("wal") == []


async def test_a_slot_file_that_cannot_be_removed_is_removed_later(
    service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    async with service.store() as delayed:
        await delayed.schedule(b"payload", at=BEGIN + 25)
        await asyncio.sleep(24)
        service.disk.fail("remove", path=PATH / "slots")
        await asyncio.sleep(10)
        assert len(service.files("slots")) == 1
        await asyncio.sleep(10)
        assert service.files("slots") == []
    assert f"the file of slot {int(BEGIN + 25)} stays: [Errno 5]" in caplog.text


async def test_a_message_that_could_not_be_read_is_cancelled_before_it_is_read_again(
    service: Service,
) -> None:
    async with service.store() as delayed:
        await asyncio.sleep(0.1)
        receipt = await delayed.schedule(b"payload", at=BEGIN + 5)
        await delayed.schedule(b"another", at=BEGIN + 5)
        service.disk.fail("read", thread="reader", times=2)
        await asyncio.sleep(5)
        assert await delayed.cancel(receipt)
        await asyncio.sleep(10)
    assert service.payloads == [b"another"]


async def test_slots_that_cannot_be_listed_are_listed_later(
    service: Service, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async with service.store() as delayed:
        receipt = await delayed.schedule(b"cancelled", at=BEGIN + 15)
        await delayed.schedule(b"payload", at=BEGIN + 15)
    present = SlotFiles.present

    failures = 0

    def fail_twice(slots: SlotFiles, before: int) -> list[int]:
        nonlocal failures
        failures += 1
        if failures == 2:
            monkeypatch.setattr(SlotFiles, "present", present)
        raise OSError(errno.EIO, "cannot be listed")

    monkeypatch.setattr(SlotFiles, "present", fail_twice)
    async with service.store() as delayed:
        for _ in range(2):
            # The first one waits for the turn.
            with pytest.raises(OSError, match="cannot be listed") as error:
                await delayed.cancel(receipt)
        await asyncio.sleep(2.1)
        assert await delayed.cancel(receipt)
        await asyncio.sleep(15)
    assert service.payloads == [b"payload"]
    [record] = caplog.records
    assert record.getMessage() == f"{PATH}: messages wait in the log and may be late: {error.value}"


async def test_a_log_whose_segment_cannot_be_ended_hides_no_message(service: Service) -> None:
    async def fail() -> int:
        raise OSError(errno.EIO, "cannot be closed")

    async with service.store() as delayed:
        horizon = open_store(delayed).loader.horizon
        await delayed.schedule(b"in the slot file", at=BEGIN + 45)
        await asyncio.sleep(15)
        receipt = await delayed.schedule(b"cancelled", at=BEGIN + 45)
        await delayed.schedule(b"in the log", at=BEGIN + 45)
        await asyncio.sleep(4.9)
        seal, horizon.seal = horizon.seal, fail
        await asyncio.sleep(11)
        with pytest.raises(OSError, match="cannot be closed"):
            await delayed.cancel(receipt)
        horizon.seal = seal
        await asyncio.sleep(1.1)
        assert await delayed.cancel(receipt)
        await asyncio.sleep(15)
    assert service.payloads == [b"in the slot file", b"in the log"]


async def test_a_log_that_can_be_neither_spread_nor_read_is_spread_later(
    service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(operation: str) -> None:
        if operation == "read" and "searcher" in threading.current_thread().name:
            raise OSError(errno.EIO, "cannot be read")

    async with service.store() as delayed:
        receipt = await delayed.schedule(b"cancelled", at=BEGIN + 25)
        await delayed.schedule(b"payload", at=BEGIN + 25)
        await asyncio.sleep(9.9)
        service.disk.capacity = service.disk.used
        service.disk.watch = fail
        await asyncio.sleep(2.2)
        with pytest.raises(OSError, match="cannot be read"):
            await delayed.cancel(receipt)
        service.disk.capacity = None
        service.disk.watch = lambda operation: None
        await asyncio.sleep(1.1)
        assert await delayed.cancel(receipt)
        await asyncio.sleep(15)
    assert service.payloads == [b"payload"]
    assert [record.getMessage().split(": ")[1] for record in caplog.records] == [
        "messages wait in the log and may be late"
    ]


async def test_a_damage_is_logged_once(service: Service, caplog: pytest.LogCaptureFixture) -> None:
    async with service.store() as delayed:
        await delayed.schedule(b"in a slot file", at=BEGIN + 60)
        await delayed.schedule(b"behind it", at=BEGIN + 60)
        await asyncio.sleep(11)
        await delayed.schedule(b"soon", at=BEGIN + 25)
        await delayed.schedule(b"later", at=BEGIN + 60)
        await delayed.schedule(b"whole", at=BEGIN + 60)
        # A process that was killed leaves this.
        service.disk = service.disk.after_power_cut(EVERYTHING)
    [segment] = service.files("wal")
    log = service.disk.content(PATH / "wal" / segment).data
    for payload in (b"soon", b"later"):
        log[log.index(payload)] ^= 0x40
    [hour] = service.disk.names(PATH / "slots")
    slot = service.disk.content(PATH / "slots" / hour / f"{int(BEGIN + 60) * 1000}").data
    slot[slot.index(b"in a slot file")] ^= 0x40
    async with service.store() as delayed:
        for _ in range(2):
            listed = [message.payload async for message in delayed.pending()]
            assert sorted(listed) == [b"behind it", b"whole"]
        await asyncio.sleep(60)
    assert sorted(service.payloads) == [b"behind it", b"whole"]
    told = [record.getMessage() for record in caplog.records]
    assert len(told) == 2
    assert all(where in message for where, message in zip(("segment", "slot"), told, strict=True))


async def test_an_emptied_segment_is_told_when_the_store_is_opened(
    service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    async with service.store() as delayed:
        await delayed.schedule(b"payload", at=BEGIN + 5)
        await asyncio.sleep(1)
        service.disk = service.disk.after_power_cut(EVERYTHING)
    caplog.clear()
    [segment] = service.files("wal")
    service.disk.content(PATH / "wal" / segment).data.clear()
    for _ in range(2):
        async with service.store():
            await asyncio.sleep(11)
    assert [record.getMessage() for record in caplog.records] == [
        f"/service/messages: segment {int(segment)} of the log is empty: a crash came before its first "
        "message was stored, or its messages are lost"
    ]
