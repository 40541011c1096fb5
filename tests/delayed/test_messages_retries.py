"""A message whose delivery fails is delivered again later, or set aside, and holds up no other."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from itertools import pairwise

import pytest

from purgatory import PurgatoryClosed
from purgatory.delayed import DelayedMessages
from tests.delayed.service import BEGIN, PATH, Delivered, Service


def failing(error: Callable[[], BaseException], *payloads: bytes) -> Callable[[Delivered], Awaitable[None]]:
    """A handler that raises for some payloads, or for all."""

    async def handle(attempt: Delivered) -> None:
        if not payloads or attempt.payload in payloads:
            raise error()

    return handle


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
        service.disk.fail("read", thread="reader")
        await asyncio.sleep(5)
        assert len(service.attempts) == 1
        assert delayed.statistics().retrying == 1
        service.handle = service._take
        await asyncio.sleep(10)
    assert [delivered[:3] for delivered in service.delivered] == [("the id", b"payload", BEGIN + 0.5)]


async def test_a_message_may_fail_very_often(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("purgatory.delayed.schedule.LONGEST_BACKOFF", 0.01)
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


async def test_a_delivery_that_reads_something_cancelled_is_tried_again_and_reported(
    service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    job: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    job.cancel()

    def deliver(id: str, payload: bytes, due: float) -> Awaitable[object]:
        if len(service.attempts) < 2:
            service.attempts.append(Delivered(id, payload, due, service.wall()))
            # Before there is a coroutine.
            job.result()
        return service.deliver(id, payload, due)

    async with DelayedMessages(PATH, deliver, clock=service.wall, disk=service.disk, attempts=3) as delayed:
        await delayed.schedule(b"payload", at=BEGIN + 1)
        await asyncio.sleep(10)
    assert service.payloads == [b"payload"]
    assert len(service.attempts) == 3
    words = "deliver raised CancelledError: something that it reads was cancelled"
    assert caplog.text.count(f"is tried again in 1 s: RuntimeError('{words}')") == 1
    assert caplog.text.count(f"is tried again in 2 s: RuntimeError('{words}')") == 1


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


async def test_the_log_says_when_a_message_fails(service: Service, caplog: pytest.LogCaptureFixture) -> None:
    service.handle = failing(lambda: ValueError("no"))
    async with service.store() as delayed:
        await delayed.schedule(b"payload", at=BEGIN, id="the id")
        await asyncio.sleep(0.5)
    [record] = caplog.records
    assert record.levelno == logging.WARNING
    assert record.getMessage() == "message 'the id' failed, and is tried again in 1 s: ValueError('no')"
