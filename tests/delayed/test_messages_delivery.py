"""Messages are delivered at their time and in order."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from random import Random

import pytest

from purgatory.delayed import DelayedMessages
from tests.delayed.service import BEGIN, PATH, Delivered, Service, SlowDisk
from tests.operations import Gate


@pytest.mark.parametrize("delay", [0.0, 0.001, 0.5, 1.0, 9.999, 10.0, 19.5, 20.001, 35.0, 3_600.0])
async def test_a_message_is_delivered_at_its_time_and_not_before(service: Service, delay: float) -> None:
    async with service.store() as delayed:
        receipt = await delayed.schedule(b"payload", at=BEGIN + delay)
        await asyncio.sleep(delay + 0.002)
    [delivered] = service.delivered
    assert 0 <= delivered.late < 0.002
    assert delivered[:3] == (receipt.id, b"payload", BEGIN + delay)
    assert receipt.due == BEGIN + delay


async def test_messages_are_delivered_in_the_order_of_their_due_times(service: Service) -> None:
    random = Random(0)
    dues = [BEGIN + round(random.expovariate(0.1), 3) for _ in range(1_000)]
    # A millisecond of the wall clock does not begin with a tick of the loop's, as it does in the other tests.
    # There, rounding errors decide in which tick a message is due.
    service.wall.offset += 0.0004
    async with service.store(workers=1) as delayed:
        await asyncio.gather(*(delayed.schedule(str(due).encode(), at=due) for due in dues))
        await asyncio.sleep(150)
    assert [delivered.due for delivered in service.delivered] == sorted(dues)
    assert all(0 <= delivered.late < 0.002 for delivered in service.delivered)
    assert service.files("slots") == []


async def test_a_message_of_the_past_is_delivered_at_once(service: Service) -> None:
    async with service.store() as delayed:
        for at in (BEGIN - 1, BEGIN - 1e6, 0.0, -1e9):
            await delayed.schedule(b"payload", at=at)
        await asyncio.sleep(0.001)
        assert len(service.delivered) == 4


async def test_no_more_deliveries_run_than_there_are_workers(service: Service) -> None:
    running, most = 0, 0

    async def handle(attempt: Delivered) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(1)
        running -= 1

    service.handle = handle
    async with service.store(workers=3) as delayed:
        for number in range(9):
            await delayed.schedule(b"%d" % number, at=BEGIN + 1)
        await asyncio.sleep(4.1)
    assert most == 3
    assert [round(delivered.late, 3) for delivered in service.delivered] == [0, 0, 0, 1, 1, 1, 2, 2, 2]


async def test_statistics_say_how_many_messages_wait_for_a_worker_and_how_long(service: Service) -> None:
    async def handle(attempt: Delivered) -> None:
        await asyncio.sleep(10)
        if attempt.payload == b"fails":
            raise ValueError

    def waiting() -> tuple[int, float]:
        statistics = delayed.statistics()
        return statistics.waiting, round(statistics.lag_seconds, 1)

    service.handle = handle
    async with service.store(workers=1, attempts=2, backoff=1) as delayed:
        await delayed.schedule(b"fails", at=BEGIN)
        await asyncio.sleep(1)
        assert waiting() == (0, 0)
        for number in range(2):
            await delayed.schedule(b"%d" % number, at=BEGIN - 10 + number)
        await asyncio.sleep(1)
        assert waiting() == (2, 12)
        await asyncio.sleep(10)
        # The next attempt was due at 11 s.
        assert waiting() == (2, 21)
        await asyncio.sleep(10)
        assert waiting() == (1, 11)
    assert waiting() == (0, 0)


async def test_a_delivery_that_hangs_blocks_no_other(service: Service) -> None:
    hanging = asyncio.Event()

    async def handle(attempt: Delivered) -> None:
        if attempt.payload == b"hangs":
            await hanging.wait()

    service.handle = handle
    async with service.store(workers=2) as delayed:
        for number in range(5):
            await delayed.schedule(b"hangs" if number == 0 else b"%d" % number, at=BEGIN + 1 + number)
        await asyncio.sleep(100)
        assert service.payloads == [b"1", b"2", b"3", b"4"]
        hanging.set()
    assert service.payloads[-1] == b"hangs"


async def listed(messages: AsyncIterator[object]) -> None:
    async for _ in messages:
        pass


SEARCHES: dict[str, Callable[[DelayedMessages], Awaitable[object]]] = {
    "the index of a slot": lambda delayed: asyncio.sleep(0.2),
    "a listing": lambda delayed: listed(delayed.pending()),
    "the dead letters": lambda delayed: listed(delayed.dead_letters()),
}


@pytest.mark.parametrize("search", SEARCHES)
async def test_what_takes_long_to_read_holds_up_no_message_that_is_due(service: Service, search: str) -> None:
    arrived = asyncio.Event()

    async def handle(attempt: Delivered) -> None:
        if attempt.payload == b"payload":
            arrived.set()

    service.handle = handle
    async with service.store() as delayed:
        await delayed.schedule(b"in a slot file", at=BEGIN + 25)
        await asyncio.sleep(9.9)
        await delayed.schedule(b"payload", at=BEGIN + 15)
        slow = SlowDisk(service, "read", "searcher")
        searching = asyncio.ensure_future(SEARCHES[search](delayed))
        await slow.begun.wait()
        # Time stands still while a thread is at work. This lets the store look at the clock.
        service.wall.offset += 10
        await delayed.schedule(b"another", at=BEGIN)
        await arrived.wait()
        slow.free.set()
        await searching


async def test_a_message_that_was_delivered_is_not_delivered_after_a_restart(service: Service) -> None:
    async with service.store() as delayed:
        await delayed.schedule(b"payload", at=BEGIN + 1)
        await delayed.schedule(b"another", at=BEGIN + 100)
        await asyncio.sleep(2)
    async with service.store():
        await asyncio.sleep(200)
    assert service.payloads == [b"payload", b"another"]


async def test_files_go_when_their_messages_have_been_delivered(service: Service) -> None:
    async with service.store() as delayed:
        for delay in (1, 5, 30, 31, 4_000):
            await delayed.schedule(b"payload", at=BEGIN + delay, id=str(delay))
        await asyncio.sleep(60)
        assert service.files("slots") == [str(int(BEGIN + 4_000) * 1000)]
        assert service.files("wal") == []
        await asyncio.sleep(4_000)
    assert service.files("slots") == []
    assert service.disk.names(PATH / "slots") == []
    assert service.files("wal") == []


async def test_statistics_count_what_happens(service: Service) -> None:
    async with service.store() as delayed:
        receipt = await delayed.schedule(b"cancelled", at=BEGIN + 1)
        await delayed.schedule(b"payload", at=BEGIN + 1, id="id")
        await delayed.schedule(b"payload", at=BEGIN + 1, id="id")
        await delayed.schedule(b"later", at=BEGIN + 100)
        await delayed.cancel(receipt)
        await asyncio.sleep(20)
        statistics = delayed.statistics()
    assert (statistics.scheduled, statistics.delivered, statistics.cancelled) == (3, 1, 1)
    assert statistics.log_bytes > 3 * 27
    assert statistics.slot_bytes > 27


async def test_an_operation_of_the_purgatory_that_is_no_message_is_left_alone(service: Service) -> None:
    async with service.store() as delayed:
        gate = Gate(timeout=100)
        receipt = await delayed.schedule(b"payload", at=BEGIN + 1)
        delayed.purgatory.try_complete_else_watch(gate, [receipt.token])
        service.wall.offset += 3_600
        await asyncio.sleep(0.6)
        assert not gate.done
        assert not await delayed.cancel(receipt)
        assert service.payloads == [b"payload"]
