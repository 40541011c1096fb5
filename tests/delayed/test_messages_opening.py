"""A store is opened and closed, also when tasks are cancelled meanwhile."""

from __future__ import annotations

import asyncio
import math
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from purgatory import PurgatoryClosed, PurgatoryNotOpen
from purgatory.delayed import DeadLetter, DelayedMessages, PendingMessage, StoreLocked
from tests.delayed.service import BEGIN, PATH, Delivered, Service, SlowDisk
from tests.delayed.storage.simulated_disk import NOTHING
from tests.operations import a_few_turns


async def nothing(id: str, payload: bytes, due: float) -> None:
    pass


async def read(letters: AsyncIterator[DeadLetter]) -> list[DeadLetter]:
    return [letter async for letter in letters]


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"slot": 0}, "slot must be a positive number of whole milliseconds, in seconds, not 0"),
        ({"slot": -1}, "slot must be"),
        ({"slot": 0.0005}, "slot must be"),
        ({"slot": 1.0005}, "slot must be"),
        ({"slot": float("nan")}, "slot must be"),
        ({"slot": float("inf")}, "slot must be"),
        ({"workers": 0}, "workers and attempts must be at least 1, not 0 and 10"),
        ({"attempts": 0}, "workers and attempts must be at least 1, not 100 and 0"),
        ({"backoff": 0}, "backoff must be a positive number of seconds, not 0"),
        ({"backoff": float("inf")}, "backoff must be"),
        ({"backoff": float("nan")}, "backoff must be"),
        ({"max_payload": 0}, "max_payload must be from 1 to 67108864 bytes, not 0"),
        ({"max_payload": (1 << 26) + 1}, "max_payload must be"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        DelayedMessages("messages", nothing, **options)


@pytest.mark.parametrize("slot", [1.001, 0.1, 7, 3_600, 100_000.0])
async def test_a_slot_has_any_number_of_milliseconds(service: Service, slot: float) -> None:
    async with service.store(slot=slot) as delayed:
        for delay in (0.5, 30, 4_000):
            await delayed.schedule(b"%d" % delay, at=BEGIN + delay)
    async with service.store(slot=slot):
        await asyncio.sleep(4_001)
    assert service.payloads == [b"0", b"30", b"4000"]
    assert all(0 <= delivered.late < 0.002 for delivered in service.delivered)


async def test_a_store_can_be_entered_once(service: Service) -> None:
    delayed = service.store()
    assert repr(delayed) == f"<DelayedMessages {str(PATH)!r} new>"
    async with delayed:
        assert repr(delayed) == f"<DelayedMessages {str(PATH)!r} open>"
        with pytest.raises(RuntimeError, match="was entered before"):
            await delayed.__aenter__()
    assert repr(delayed) == f"<DelayedMessages {str(PATH)!r} closed>"
    with pytest.raises(RuntimeError, match="was entered before: make a new one"):
        await delayed.__aenter__()


async def test_leaving_twice_is_harmless(service: Service) -> None:
    delayed = service.store()
    await delayed.__aenter__()
    async with anyio.create_task_group() as tasks:
        for _ in range(2):
            tasks.start_soon(delayed.__aexit__, None, None, None)
    await delayed.__aexit__(None, None, None)
    async with service.store():
        pass


async def test_calls_before_and_after_say_that_the_store_is_not_open(service: Service) -> None:
    delayed = service.store()
    for call in (delayed.schedule(b"", at=0), delayed.find("id"), anext(delayed.dead_letters())):
        with pytest.raises(PurgatoryNotOpen, match="is not open: use `async with`"):
            await call
    with pytest.raises(PurgatoryNotOpen):
        delayed.statistics()
    async with delayed:
        receipt = await delayed.schedule(b"payload", at=BEGIN + 1)
    with pytest.raises(PurgatoryClosed, match="has been closed"):
        await delayed.schedule(b"", at=0)
    with pytest.raises(PurgatoryClosed, match="has been closed"):
        await delayed.cancel(receipt)
    assert delayed.statistics().scheduled == 1


async def test_a_directory_that_is_in_use_is_refused(tmp_path: Path) -> None:
    async with DelayedMessages(tmp_path, nothing):
        with pytest.raises(StoreLocked, match="is open already"):
            await DelayedMessages(tmp_path, nothing).__aenter__()
    async with DelayedMessages(tmp_path, nothing):
        pass


async def test_a_store_on_a_real_disk_keeps_its_messages(tmp_path: Path) -> None:
    arrived = asyncio.Event()
    delivered: list[tuple[str, bytes, float]] = []

    async def deliver(id: str, payload: bytes, due: float) -> None:
        delivered.append((id, payload, due))
        arrived.set()

    async with DelayedMessages(tmp_path / "new" / "messages", deliver) as delayed:
        await delayed.schedule(b"payload", at=2e9, id="the id")
        assert await delayed.cancel(await delayed.schedule(b"cancelled", at=1e9 + 1e9))
    async with DelayedMessages(str(tmp_path / "new" / "messages"), deliver, clock=lambda: 2e9) as delayed:
        await arrived.wait()
    assert delivered == [("the id", b"payload", 2e9)]
    async with DelayedMessages(tmp_path / "new" / "messages", deliver, clock=lambda: 2e9):
        pass
    assert len(delivered) == 1


async def test_a_path_that_is_no_directory_raises(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file"):
        async with DelayedMessages(tmp_path / "file" / "messages", nothing):
            raise AssertionError


async def test_the_fixture_style_opens_and_closes_in_two_tasks(service: Service) -> None:
    delayed = service.store()
    await asyncio.create_task(delayed.__aenter__())
    await delayed.schedule(b"payload", at=BEGIN)
    await asyncio.sleep(0.01)
    await asyncio.create_task(delayed.__aexit__(None, None, None))
    assert service.payloads == [b"payload"]


async def test_leaving_waits_for_deliveries_and_starts_no_others(service: Service) -> None:
    async def handle(attempt: Delivered) -> None:
        await asyncio.sleep(5)

    service.handle = handle
    async with service.store(workers=1) as delayed:
        await delayed.schedule(b"first", at=BEGIN)
        await delayed.schedule(b"second", at=BEGIN)
        await asyncio.sleep(1)
    assert service.payloads == [b"first"]
    async with service.store() as delayed:
        await asyncio.sleep(6)
    assert service.payloads == [b"first", b"second"]


async def test_a_delivery_schedules_and_cancels_while_the_store_is_closed(service: Service) -> None:
    async def handle(attempt: Delivered) -> None:
        if attempt.payload == b"payload":
            await asyncio.sleep(5)
            await delayed.schedule(b"next", at=BEGIN + 6)
            await delayed.schedule(b"much later", at=BEGIN + 60)
            assert await delayed.cancel(receipt)
            assert await delayed.find("id") is None

    service.handle = handle
    async with service.store(attempts=1) as delayed:
        receipt = await delayed.schedule(b"cancelled", at=BEGIN + 10, id="id")
        await delayed.schedule(b"payload", at=BEGIN)
        await asyncio.sleep(1)
    assert service.payloads == [b"payload"]
    async with service.store() as reopened:
        assert [each async for each in reopened.dead_letters()] == []
        await asyncio.sleep(60)
    assert service.payloads == [b"payload", b"next", b"much later"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
async def test_an_exception_that_leaves_the_block_cancels_deliveries(
    service: Service, error: type[BaseException]
) -> None:
    async def handle(attempt: Delivered) -> None:
        await asyncio.sleep(1_000)

    service.handle = handle

    async def serve() -> None:
        async with service.store() as delayed:
            await delayed.schedule(b"payload", at=BEGIN)
            await asyncio.sleep(1)
            raise error

    with pytest.raises(error):
        await serve()
    assert service.wall() < BEGIN + 2
    service.handle = service._take
    async with service.store():
        await asyncio.sleep(1)
    assert service.payloads == [b"payload"]


async def test_leaving_is_cancelled_and_waits_for_the_disk_alone(service: Service) -> None:
    async def handle(attempt: Delivered) -> None:
        await asyncio.sleep(1_000)

    async def serve() -> None:
        async with service.store() as delayed:
            await delayed.schedule(b"payload", at=BEGIN)
            await asyncio.sleep(1)

    service.handle = handle
    serving = asyncio.create_task(serve())
    await asyncio.sleep(2)
    serving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await serving
    assert service.wall() < BEGIN + 3


async def test_entering_that_is_cancelled_waits_for_the_disk_and_leaves_no_lock(service: Service) -> None:
    slow = SlowDisk(service, "rename", "log")

    async def enter() -> None:
        async with service.store():
            raise AssertionError

    entering = asyncio.create_task(enter())
    await slow.begun.wait()
    entering.cancel()
    # This would not return if the loop waited for the disk.
    await a_few_turns()
    assert not entering.done()
    slow.free.set()
    with pytest.raises(asyncio.CancelledError):
        await entering
    async with service.store():
        pass


@pytest.mark.parametrize("cancel", ["task", "scope"])
async def test_leaving_that_is_cancelled_waits_for_the_disk(service: Service, cancel: str) -> None:
    scope = anyio.CancelScope()
    slow = SlowDisk(service, None, "mover")

    async def serve() -> None:
        with scope:
            async with service.store() as delayed:
                await delayed.schedule(b"payload", at=BEGIN + 60)
                slow.operation = "sync"
            await anyio.sleep_forever()

    serving = asyncio.create_task(serve())
    await slow.begun.wait()
    for _ in range(3):
        if cancel == "task":
            serving.cancel()
        else:
            scope.cancel()
        await a_few_turns()
    assert not serving.done()
    slow.free.set()
    await asyncio.wait([serving])
    assert serving.cancelled() is (cancel == "task")
    async with service.store():
        await asyncio.sleep(61)
    assert service.payloads == [b"payload"]


@pytest.mark.parametrize("turns", range(12))
@pytest.mark.parametrize("delay", [0.0, 60.0])
async def test_a_task_that_schedules_and_is_cancelled_stores_the_message_or_not(
    service: Service, delay: float, turns: int
) -> None:
    async with service.store() as delayed:
        await asyncio.sleep(0.1)
        scheduling = asyncio.create_task(delayed.schedule(b"payload", at=BEGIN + delay))
        for _ in range(turns):
            await asyncio.sleep(0)
        scheduling.cancel()
        await asyncio.wait([scheduling])
        await delayed.schedule(b"another", at=BEGIN + delay)
        await asyncio.sleep(delay + 1)
    assert service.payloads.count(b"payload") <= 1
    if not scheduling.cancelled():
        assert b"payload" in service.payloads
    assert b"another" in service.payloads
    assert service.files("slots") == []


@pytest.mark.parametrize("turns", range(12))
@pytest.mark.parametrize("delay", [0.0, 5.0, 60.0])
async def test_calls_that_run_while_the_store_is_closed_end(
    service: Service, delay: float, turns: int
) -> None:
    async with service.store() as delayed:
        receipt = await delayed.schedule(b"first", at=BEGIN + 7 + delay)
        calls: list[asyncio.Task[Any]] = [
            asyncio.create_task(delayed.schedule(b"payload", at=BEGIN + delay)),
            asyncio.create_task(delayed.cancel(receipt)),
            asyncio.create_task(delayed.find("id")),
            asyncio.create_task(read(delayed.dead_letters())),
        ]
        for _ in range(turns):
            await asyncio.sleep(0)
    await asyncio.wait(calls, timeout=1)
    errors = [call.exception() for call in calls]
    assert all(error is None or isinstance(error, PurgatoryClosed) for error in errors)
    async with service.store():
        await asyncio.sleep(delay + 10)
    expected = set() if errors[0] else {b"payload"}
    if errors[1]:
        expected.add(b"first")
    assert set(service.payloads) == expected


async def test_a_listing_ends_with_an_error_when_the_store_is_closed(service: Service) -> None:
    async with service.store() as delayed:
        await asyncio.gather(*(delayed.schedule(b"payload", at=BEGIN + 600) for _ in range(1_001)))
        begun, not_begun = delayed.pending(), delayed.pending()
        await anext(begun)
    with pytest.raises(PurgatoryClosed, match="has been closed"):
        async for _ in begun:
            pass
    with pytest.raises(PurgatoryClosed, match="has been closed"):
        await anext(not_begun)


@pytest.mark.parametrize("turns", range(12))
async def test_a_listing_that_begins_while_the_store_is_closed_ends(service: Service, turns: int) -> None:
    async def listing() -> list[PendingMessage]:
        return [message async for message in delayed.pending()]

    async with service.store() as delayed:
        await delayed.schedule(b"payload", at=BEGIN + 600)
        listed = asyncio.create_task(listing())
        for _ in range(turns):
            await asyncio.sleep(0)
    await asyncio.wait([listed], timeout=1)
    error = listed.exception()
    assert isinstance(error, PurgatoryClosed) if error else len(listed.result()) == 1


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["none", "crash"])
async def test_a_restart_at_any_time_delivers_each_message(service: Service, fault: str) -> None:
    async with service.store() as delayed:
        for number in range(100):
            await delayed.schedule(b"%d" % number, at=BEGIN + number + 0.1, id=str(number))
    disk = service.disk
    for _ in range(40):
        service.disk = disk
        async with service.store():
            await asyncio.sleep(2.7)
            if fault == "crash":
                # The rest of this store works on a disk that nobody reads any more.
                await asyncio.sleep(0.02)
                disk = disk.after_power_cut(NOTHING)
    assert sorted(map(int, set(service.payloads))) == list(range(100))
    # One message may have been delivered in the last hundredth of a second before each crash.
    assert len(service.payloads) - 100 <= (0 if fault == "none" else 40)
    assert all(delivered.late >= 0 for delivered in service.delivered)


def test_a_store_whose_loop_ends_leaves_nothing_that_blocks_the_process(tmp_path: Path) -> None:
    async def serve() -> None:
        delayed = DelayedMessages(tmp_path, nothing)
        await delayed.__aenter__()
        await delayed.schedule(b"payload", at=2e9)
        await delayed.__aexit__(None, None, None)

    asyncio.run(serve())
    assert os.listdir(tmp_path / "slots")


@pytest.mark.parametrize("slot", [1, 39, 41, 60, 3_600])
async def test_a_store_with_long_slots_is_opened_without_moving_its_log(
    service: Service, slot: float
) -> None:
    # The last slot that is soon begins in two turns.
    service.wall.offset = math.ceil((BEGIN + 20) / slot) * slot - 20
    due = service.wall() + 20 + slot - 0.001
    async with service.store(slot=slot) as delayed:
        await delayed.schedule(b"payload", at=due)
    segments = service.files("wal")
    for _ in range(2):
        async with service.store(slot=slot) as delayed:
            assert delayed.statistics().slot_bytes == 0
        assert service.files("slots") == []
        assert service.files("wal") == segments
    async with service.store(slot=slot):
        await asyncio.sleep(due - service.wall() + 0.1)
    assert service.payloads == [b"payload"]
