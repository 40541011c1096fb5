"""Messages are delivered at their time, in order, and again when that fails."""

from __future__ import annotations

import asyncio
import errno
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from itertools import pairwise
from random import Random

import pytest

from purgatory import PurgatoryClosed
from purgatory.delayed import DelayedMessages
from tests.delayed.service import BEGIN, PATH, Delivered, Service, SlowDisk
from tests.operations import Gate


def failing(error: Callable[[], BaseException], *payloads: bytes) -> Callable[[Delivered], Awaitable[None]]:
    """A handler that raises for some payloads, or for all."""

    async def handle(attempt: Delivered) -> None:
        if not payloads or attempt.payload in payloads:
            raise error()

    return handle


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


async def test_a_second_with_many_more_messages_than_memory_takes_is_delivered_whole(
    service: Service,
) -> None:
    async def schedule(number: int) -> None:
        await delayed.schedule(b"%d" % number, at=BEGIN + 30 + number % 7 / 1000)

    async with service.store() as delayed:
        await asyncio.gather(*map(schedule, range(10_500)))
        await asyncio.sleep(40)
        assert sorted(map(int, service.payloads)) == list(range(10_500))
        assert max(delivered.late for delivered in service.delivered) < 0.1
        assert delayed.statistics().delivered == 10_500


async def test_large_messages_do_not_fill_the_memory(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("purgatory.delayed.waiting_room._BYTES", 4_000)
    monkeypatch.setattr("purgatory.delayed.store._READ", 2_000)
    in_memory: list[int] = []

    async def handle(attempt: Delivered) -> None:
        assert delayed._parts is not None
        in_memory.append(delayed._parts.loader.room.loaded)
        await asyncio.sleep(0.001)

    service.handle = handle
    async with service.store(workers=1) as delayed:
        for number in range(20):
            await delayed.schedule(bytes(1_000) + b"%d" % number, at=BEGIN + 1.5)
        await asyncio.sleep(10)
    assert [payload[1_000:] for payload in service.payloads] == [b"%d" % number for number in range(20)]
    # One read may bring some more than there is room for.
    assert max(in_memory) <= 6


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


# Failures


async def test_a_failed_delivery_is_tried_again_after_twice_as_long_each_time(
    service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    service.handle = failing(lambda: ValueError("no"))
    async with service.store(backoff=1, attempts=9) as delayed:
        await delayed.schedule(b"payload", at=BEGIN + 1, id="the id")
        await asyncio.sleep(2)
        assert delayed.statistics().retrying == 1
        await asyncio.sleep(400)
        times = [attempt.at - BEGIN for attempt in service.attempts]
        pauses = [after - before for before, after in pairwise(times)]
        assert pauses == pytest.approx([1, 2, 4, 8, 16, 32, 60, 60], abs=0.005)
        [letter] = [each async for each in delayed.dead_letters()]
        assert letter == ("the id", BEGIN + 1, b"payload", "ValueError('no')")
        statistics = delayed.statistics()
        assert (statistics.failures, statistics.dead, statistics.retrying, statistics.delivered) == (
            9,
            1,
            0,
            0,
        )
        await asyncio.sleep(400)
        assert len(service.attempts) == 9
    assert "message 'the id' was set aside, after 9 failures" in caplog.text
    async with service.store() as delayed:
        await asyncio.sleep(100)
        assert len([each async for each in delayed.dead_letters()]) == 1
    assert len(service.attempts) == 9


async def test_failing_messages_block_nobody(service: Service) -> None:
    service.handle = failing(lambda: ValueError("no"), b"fails")
    async with service.store(workers=1) as delayed:
        for number in range(10):
            await delayed.schedule(b"fails", at=BEGIN + 1)
            await delayed.schedule(b"%d" % number, at=BEGIN + 2)
        await asyncio.sleep(2.1)
    assert service.payloads == [b"%d" % number for number in range(10)]


async def test_large_messages_that_fail_leave_room_for_others(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("purgatory.delayed.waiting_room._BYTES", 4_000)
    service.handle = failing(lambda: ValueError("no"), bytes(1_000))
    async with service.store() as delayed:
        for _ in range(20):
            await delayed.schedule(bytes(1_000), at=BEGIN + 1)
        await delayed.schedule(b"another", at=BEGIN + 2)
        await asyncio.sleep(2.1)
        assert service.payloads == [b"another"]
        await asyncio.sleep(300)
        assert len([each async for each in delayed.dead_letters()]) == 20
    assert len(service.attempts) == 20 * 10 + 1


async def test_many_messages_that_fail_end_before_new_ones_are_read(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("purgatory.delayed.waiting_room._RETRYING", 5)
    service.handle = failing(lambda: ValueError("no"), b"fails")
    most = 0
    async with service.store(attempts=2) as delayed:
        for number in range(12):
            await delayed.schedule(b"fails", at=BEGIN + 2 + number)
        await delayed.schedule(b"another", at=BEGIN + 15)
        service.wall.offset += 1_000
        for _ in range(400):
            await asyncio.sleep(0.01)
            most = max(most, delayed.statistics().retrying)
        assert service.payloads == [b"another"]
        assert len([each async for each in delayed.dead_letters()]) == 12
    # Those of one read come together.
    assert 5 < most <= 12


async def test_a_message_is_read_again_for_each_attempt(service: Service) -> None:
    service.handle = failing(lambda: ValueError("no"))
    async with service.store(backoff=5) as delayed:
        await delayed.schedule(b"payload", at=BEGIN + 0.5, id="the id")
        await asyncio.sleep(1)
        service.disk.fail("read", errno.EIO)
        await asyncio.sleep(5)
        assert len(service.attempts) == 1
        assert delayed.statistics().retrying == 1
        service.handle = service._take
        await asyncio.sleep(10)
    assert [delivered[:3] for delivered in service.delivered] == [("the id", b"payload", BEGIN + 0.5)]


async def test_a_message_may_fail_very_often(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("purgatory.delayed.delivery._LONGEST", 0.01)
    service.handle = failing(lambda: ValueError("no"))
    async with service.store(attempts=1_100) as delayed:
        await delayed.schedule(b"payload", at=BEGIN)
        await asyncio.sleep(1_100 * 0.012)
        assert len([each async for each in delayed.dead_letters()]) == 1


async def test_dead_letters_are_read_some_at_a_time(service: Service) -> None:
    service.handle = failing(lambda: ValueError("no"))
    async with service.store(attempts=1) as delayed:
        for number in range(25):
            await delayed.schedule(b"%d" % number, at=BEGIN + number)
        await asyncio.sleep(30)
        assert [int(each.payload) async for each in delayed.dead_letters()] == list(range(25))
        unfinished = delayed.dead_letters()
        assert (await anext(unfinished)).payload == b"0"
    with pytest.raises(PurgatoryClosed):
        [each async for each in unfinished]


class Unspeakable(Exception):
    def __repr__(self) -> str:
        raise ValueError("no words")


@pytest.mark.parametrize(
    "error", [Unspeakable, lambda: ValueError("\ud800" * 3_000), asyncio.CancelledError, StopAsyncIteration]
)
async def test_whatever_a_delivery_raises_harms_its_message_alone(
    service: Service, error: Callable[[], BaseException]
) -> None:
    service.handle = failing(error, b"fails")
    async with service.store(attempts=2) as delayed:
        await delayed.schedule(b"fails", at=BEGIN + 1)
        await delayed.schedule(b"another", at=BEGIN + 5)
        await asyncio.sleep(6)
        [letter] = [each async for each in delayed.dead_letters()]
        assert letter.payload == b"fails"
    assert service.payloads == [b"another"]


async def test_a_message_that_cannot_be_set_aside_is_tried_again(
    service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    service.handle = failing(lambda: ValueError("no"))
    async with service.store(attempts=1) as delayed:
        await delayed.schedule(b"payload", at=BEGIN + 1)
        service.disk.capacity = service.disk.used
        await asyncio.sleep(2)
        assert [each async for each in delayed.dead_letters()] == []
        service.disk.capacity = None
        await asyncio.sleep(60)
        assert len([each async for each in delayed.dead_letters()]) == 1
        assert len(service.attempts) == 2
    assert "cannot be set aside, and is tried again: [Errno 28]" in caplog.text


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


async def test_the_log_says_when_a_message_fails(service: Service, caplog: pytest.LogCaptureFixture) -> None:
    service.handle = failing(lambda: ValueError("no"))
    async with service.store() as delayed:
        await delayed.schedule(b"payload", at=BEGIN, id="the id")
        await asyncio.sleep(0.5)
    [record] = caplog.records
    assert record.levelno == logging.WARNING
    assert record.getMessage() == "message 'the id' failed, and is tried again in 1 s: ValueError('no')"


async def test_a_long_log_is_spread_before_the_next_turn(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("purgatory.delayed.turns._LONG", 1_000)
    async with service.store() as delayed:
        await asyncio.sleep(1)
        for number in range(30):
            await delayed.schedule(bytes(100), at=BEGIN + 60 + number)
        await asyncio.sleep(1)
        assert len(service.files("slots")) >= 20
        await asyncio.sleep(90)
    assert len(service.delivered) == 30


async def test_the_log_is_spread_while_too_much_is_due(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("purgatory.delayed.turns._POSITIONS", 20)
    monkeypatch.setattr("purgatory.delayed.waiting_room._MESSAGES", 15)
    async with service.store() as delayed:
        for number in range(50):
            await delayed.schedule(b"%d" % number, at=BEGIN + 100 + number)
    service.wall.offset += 1_000
    hanging = asyncio.Event()

    async def handle(attempt: Delivered) -> None:
        await hanging.wait()

    service.handle = handle
    async with service.store(workers=1) as delayed:
        await asyncio.sleep(1)
        await delayed.schedule(b"later", at=BEGIN + 5_000)
        await asyncio.sleep(10)
        assert str(int(BEGIN + 5_000) * 1000) in service.files("slots")
        assert service.files("wal") == []
        hanging.set()
        await asyncio.sleep(1)
        assert len(service.delivered) == 50


async def test_only_so_many_positions_are_in_memory(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("purgatory.delayed.turns._POSITIONS", 20)
    monkeypatch.setattr("purgatory.delayed.waiting_room._MESSAGES", 15)
    async with service.store() as delayed:
        for number in range(200):
            await delayed.schedule(b"%d" % number, at=BEGIN + 100 + number // 10)
    most = 0

    async def handle(attempt: Delivered) -> None:
        nonlocal most
        assert delayed._parts is not None
        most = max(most, len(delayed._parts.loader._agenda))
        await asyncio.sleep(0.01)

    service.handle = handle
    service.wall.offset += 1_000
    async with service.store(workers=5) as delayed:
        await asyncio.sleep(5)
    assert sorted(map(int, service.payloads)) == list(range(200))
    # A slot of ten messages more.
    assert 10 < most <= 30
