"""A disk that is full, fails or is damaged, while messages are scheduled and delivered."""

from __future__ import annotations

import asyncio
import errno
import logging
import threading

import pytest

from purgatory import PurgatoryNotOpen
from purgatory.delayed import IdTaken, StoreFailed
from purgatory.delayed.slot_files import SlotFiles, SlotIndex
from purgatory.delayed.store import Store
from tests.delayed.service import BEGIN, PATH, Delivered, Service
from tests.delayed.simulated_disk import NOTHING


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


async def test_a_segment_that_cannot_be_closed_leaves_nobody_waiting(service: Service) -> None:
    async with service.store() as delayed:
        # The first turn is over, and the next one is far.
        await asyncio.sleep(1)
        await delayed.schedule(b"first", at=BEGIN + 3_600)
        service.disk.fail("close")
        scheduled = asyncio.create_task(delayed.schedule(b"second", at=BEGIN + 3_600))
        await asyncio.sleep(0)
        with pytest.raises(OSError, match="Input/output error"):
            await anext(delayed.pending())
        await scheduled
        await delayed.schedule(b"third", at=BEGIN + 3_600)
        found = {message.payload async for message in delayed.pending()}
        assert found == {b"first", b"second", b"third"}


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


@pytest.mark.parametrize("operation", ["sync", "sync_directory"])
async def test_a_failed_sync_closes_the_store_loudly(
    service: Service, caplog: pytest.LogCaptureFixture, operation: str
) -> None:
    delayed = service.store()

    async def serve() -> None:
        async with delayed:
            await asyncio.sleep(0.1)
            service.disk.fail(operation)
            with pytest.raises(StoreFailed):
                await delayed.schedule(b"in doubt", at=BEGIN + 60)
            for _ in range(2):
                with pytest.raises(StoreFailed, match="is closed: the disk failed to sync"):
                    await delayed.schedule(b"refused", at=BEGIN + 60)

    with pytest.raises(StoreFailed, match="failed to sync"):
        await serve()
    assert [record.levelno for record in caplog.records] == [logging.CRITICAL]
    async with service.store():
        await asyncio.sleep(100)
    assert service.payloads in ([], [b"in doubt"])


async def test_after_a_failed_sync_what_was_acknowledged_is_delivered_by_the_next_store(
    service: Service,
) -> None:
    delayed = service.store()
    receipts = []

    async def serve() -> None:
        async with delayed:
            for number in range(5):
                receipts.append(await delayed.schedule(b"%d" % number, at=BEGIN + 10 + number))
            assert await delayed.cancel(receipts[2])
            service.disk.fail("sync")
            with pytest.raises(StoreFailed):
                await delayed.cancel(receipts[3])
            await asyncio.sleep(30)
            assert service.payloads == []

    with pytest.raises(StoreFailed):
        await serve()
    service.disk = service.disk.after_power_cut(NOTHING)
    async with service.store():
        await asyncio.sleep(30)
    assert service.payloads == [b"0", b"1", b"3", b"4"]


async def test_a_sync_that_fails_in_the_background_closes_the_store(service: Service) -> None:
    delayed = service.store()

    async def serve() -> None:
        async with delayed:
            await delayed.schedule(b"payload", at=BEGIN + 60)
            service.disk.fail("sync")
            await asyncio.sleep(11)
            with pytest.raises(StoreFailed):
                await delayed.schedule(b"refused", at=BEGIN + 60)

    with pytest.raises(StoreFailed):
        await serve()
    service.disk = service.disk.after_power_cut(NOTHING)
    async with service.store():
        await asyncio.sleep(60)
    assert service.payloads == [b"payload"]


@pytest.mark.parametrize("at", [BEGIN + 1, BEGIN + 25])
async def test_a_failed_sync_of_a_removal_closes_the_store(service: Service, at: float) -> None:
    """Otherwise what was delivered or cancelled could come back after a crash."""
    delayed = service.store()

    def fail(operation: str) -> None:
        if operation == "remove":
            service.disk.fail("sync_directory")

    async def serve() -> None:
        async with delayed:
            await delayed.schedule(b"payload", at=at)
            await asyncio.sleep(at - BEGIN - 0.5)
            service.disk.watch = fail
            await asyncio.sleep(20)
            with pytest.raises(StoreFailed):
                await delayed.schedule(b"refused", at=BEGIN + 60)

    with pytest.raises(StoreFailed):
        await serve()


async def test_what_cannot_be_removed_is_removed_later_and_in_order(service: Service) -> None:
    async with service.store() as delayed:
        # Each second a segment, which ends at a turn at the latest.
        receipt = await delayed.schedule(b"cancelled", at=BEGIN + 5)
        await asyncio.sleep(0)
        await delayed._seal()
        assert await delayed.cancel(receipt)
        await delayed._seal()
        await delayed.schedule(b"late", at=BEGIN + 30)
        service.disk.fail("remove", errno.EIO, times=2)
        await asyncio.sleep(11)
        assert len(service.files("wal")) >= 2
        # The segment with the cancellation is there as long as that of the message.
        service.disk = service.disk.after_power_cut(NOTHING)
    async with service.store():
        service.disk.fail("remove", errno.EIO)
        await asyncio.sleep(60)
        assert service.files("slots") == []
        assert service.files("wal") == []
    assert service.payloads == [b"late"]


async def test_a_message_that_cannot_be_read_is_read_later_and_others_do_not_wait(service: Service) -> None:
    async with service.store() as delayed:
        for number in range(1, 4):
            await delayed.schedule(b"%d" % number, at=BEGIN + 1 + number)
        service.disk.fail("read", errno.EIO)
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
        index = SlotFiles.index

        def fail_once(slots: SlotFiles, slot: int) -> SlotIndex:
            monkeypatch.setattr(SlotFiles, "index", index)
            raise OSError(errno.EIO, "cannot be read")

        monkeypatch.setattr(SlotFiles, "index", fail_once)
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
    assert f"the slot file {int(BEGIN + 60)}: " in caplog.text
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


async def test_an_unexpected_error_of_the_store_closes_it(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    delayed = service.store()

    async def serve() -> None:
        async with delayed:
            monkeypatch.setattr(Store, "read", lambda store, places: 1 / 0)
            await delayed.schedule(b"payload", at=BEGIN + 5)
            await asyncio.sleep(6)
            with pytest.raises(StoreFailed, match="is closed: division by zero"):
                await delayed.schedule(b"refused", at=BEGIN + 5)

    with pytest.raises(ZeroDivisionError):
        await serve()
    monkeypatch.undo()
    async with service.store():
        await asyncio.sleep(6)
    assert service.payloads == [b"payload"]


async def test_a_failure_of_the_store_ends_a_task_group_that_waits_for_it(service: Service) -> None:
    delayed = service.store()

    async def serve() -> None:
        async with asyncio.TaskGroup() as group, delayed:
            group.create_task(delayed.failed())
            await asyncio.sleep(1)
            assert delayed.statistics().failed == 0
            await delayed.schedule(b"payload", at=BEGIN + 2)
            service.disk.fail("sync")
            # The note that it was delivered cannot be written, and nobody waits for that.
            await asyncio.sleep(1_000)

    with pytest.RaisesGroup(pytest.RaisesExc(StoreFailed, match="is closed: the disk failed to sync")):
        await serve()
    assert delayed.statistics().failed == 1
    assert asyncio.get_running_loop().time() < 3
    with pytest.raises(StoreFailed):
        await delayed.failed()


async def test_waiting_for_a_failure_ends_when_the_store_is_closed(service: Service) -> None:
    delayed = service.store()
    with pytest.raises(PurgatoryNotOpen):
        await delayed.failed()
    async with asyncio.TaskGroup() as group, delayed:
        waiting = group.create_task(delayed.failed())
        await asyncio.sleep(1)
        assert not waiting.done()
    await delayed.failed()


async def test_what_was_delivered_as_the_store_failed_is_not_delivered_again(service: Service) -> None:
    delayed = service.store()

    async def handle(attempt: Delivered) -> None:
        delayed._fail(ValueError("unexpected"))

    async def serve() -> None:
        async with delayed:
            await delayed.schedule(b"payload", at=BEGIN + 25)
            await asyncio.sleep(26)

    service.handle = handle
    with pytest.raises(ValueError, match="unexpected"):
        await serve()
    async with service.store():
        await asyncio.sleep(1)
    assert service.payloads == [b"payload"]
    assert service.files("slots") == []


async def test_the_exception_of_the_block_goes_before_that_of_the_store(service: Service) -> None:

    async def serve() -> None:
        async with service.store() as delayed:
            service.disk.fail("sync")
            with pytest.raises(StoreFailed):
                await delayed.schedule(b"payload", at=BEGIN + 5)
            raise IdTaken

    with pytest.raises(IdTaken):
        await serve()


async def test_deliveries_end_when_the_store_fails(service: Service) -> None:
    ended: list[BaseException] = []

    async def handle(attempt: Delivered) -> None:
        try:
            await asyncio.sleep(1_000)
        except asyncio.CancelledError as error:
            ended.append(error)
            raise

    service.handle = handle

    async def serve() -> None:
        async with service.store() as delayed:
            await delayed.schedule(b"payload", at=BEGIN)
            await asyncio.sleep(1)
            service.disk.fail("sync")
            with pytest.raises(StoreFailed):
                await delayed.schedule(b"another", at=BEGIN + 5)
            await asyncio.sleep(1)
            assert len(ended) == 1

    with pytest.raises(StoreFailed):
        await serve()


async def test_a_slot_file_that_cannot_be_removed_is_removed_later(
    service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    async with service.store() as delayed:
        await delayed.schedule(b"payload", at=BEGIN + 25)
        await asyncio.sleep(24)
        service.disk.fail("remove", errno.EIO)
        await asyncio.sleep(2)
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
        service.disk.fail("read", errno.EIO, times=2)
        await asyncio.sleep(5)
        assert await delayed.cancel(receipt)
        await asyncio.sleep(10)
    assert service.payloads == [b"another"]


async def test_two_failures_close_the_store_once(service: Service, caplog: pytest.LogCaptureFixture) -> None:
    async def serve() -> None:
        async with service.store() as delayed:
            await asyncio.sleep(0.1)
            service.disk.fail("sync", times=9)
            await asyncio.gather(
                *(delayed.schedule(b"payload", at=BEGIN + 60) for _ in range(9)), return_exceptions=True
            )
            delayed._fail(ValueError("another"))

    with pytest.raises(StoreFailed, match="failed to sync a file"):
        await serve()
    assert len(caplog.records) == 1


async def test_a_sync_that_fails_while_the_store_is_closed_is_raised_and_nothing_is_lost(
    service: Service,
) -> None:
    async def serve() -> None:
        async with service.store() as delayed:
            await delayed.schedule(b"payload", at=BEGIN + 60)
            service.disk.fail("sync")

    with pytest.raises(StoreFailed, match="failed to sync a file"):
        await serve()
    service.disk = service.disk.after_power_cut(NOTHING)
    async with service.store():
        await asyncio.sleep(61)
    assert service.payloads == [b"payload"]


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
        assert delayed._parts is not None
        turns = delayed._parts.loader.turns
        await delayed.schedule(b"in the slot file", at=BEGIN + 45)
        await asyncio.sleep(15)
        receipt = await delayed.schedule(b"cancelled", at=BEGIN + 45)
        await delayed.schedule(b"in the log", at=BEGIN + 45)
        await asyncio.sleep(4.9)
        seal, turns._seal = turns._seal, fail
        await asyncio.sleep(11)
        with pytest.raises(OSError, match="cannot be closed"):
            await delayed.cancel(receipt)
        turns._seal = seal
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
