"""The wall clock is set, forward and back, while messages wait."""

from __future__ import annotations

import asyncio

import pytest

from tests.delayed.service import BEGIN, Delivered, Service

# Where a message is: due soon and parked, in the agenda, in the log, in a slot file.
DELAYS = [0.8, 15.0, 45.0, 400.0]


@pytest.mark.parametrize("delay", DELAYS)
async def test_a_clock_that_is_set_forward_makes_messages_due(service: Service, delay: float) -> None:
    async with service.store() as delayed:
        await delayed.schedule(b"payload", at=BEGIN + delay)
        await asyncio.sleep(0.1)
        service.wall.offset += 500
        await asyncio.sleep(10.1)
        assert service.payloads == [b"payload"]


@pytest.mark.parametrize("delay", DELAYS[:2])
async def test_a_clock_that_is_set_forward_is_noticed_within_half_a_second_where_messages_are_due_soon(
    service: Service, delay: float
) -> None:
    async with service.store() as delayed:
        await delayed.schedule(b"payload", at=BEGIN + delay)
        await asyncio.sleep(0.1)
        service.wall.offset += 500
        await asyncio.sleep(0.55)
        assert service.payloads == [b"payload"]


@pytest.mark.parametrize("delay", DELAYS)
async def test_a_clock_that_is_set_back_delivers_no_message_early(service: Service, delay: float) -> None:
    async with service.store() as delayed:
        await delayed.schedule(b"payload", at=BEGIN + delay)
        await asyncio.sleep(0.1)
        service.wall.offset -= 1_000
        await asyncio.sleep(delay + 990)
        assert service.payloads == []
        await asyncio.sleep(10.1)
    [delivered] = service.delivered
    assert 0 <= delivered.late < 0.002


async def test_a_message_that_waits_for_a_worker_waits_again_when_the_clock_is_set_back(
    service: Service,
) -> None:
    async def handle(attempt: Delivered) -> None:
        if attempt.payload == b"first":
            await asyncio.sleep(5)

    service.handle = handle
    async with service.store(workers=1) as delayed:
        await delayed.schedule(b"first", at=BEGIN + 1)
        receipt = await delayed.schedule(b"cancelled", at=BEGIN + 2)
        await delayed.schedule(b"second", at=BEGIN + 2)
        await asyncio.sleep(5)
        service.wall.offset -= 100
        await asyncio.sleep(5)
        assert service.payloads == [b"first"]
        # It is back where it can be cancelled.
        assert await delayed.cancel(receipt)
        await asyncio.sleep(100)
    assert service.payloads == [b"first", b"second"]
    assert 0 <= service.delivered[1].late < 0.002


async def test_messages_that_a_step_of_the_clock_has_brought_into_memory_take_no_room_after_it_is_set_back(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("purgatory.delayed.waiting_room._MESSAGES", 5)
    async with service.store() as delayed:
        for _ in range(10):
            await delayed.schedule(b"later", at=BEGIN + 1_011)
        service.wall.offset += 1_000
        await asyncio.sleep(10.2)
        assert delayed.purgatory.statistics().pending == 5
        service.wall.offset -= 1_000
        await asyncio.sleep(0.6)
        assert delayed.purgatory.statistics().pending == 0
        await delayed.schedule(b"another", at=service.wall() + 2)
        await asyncio.sleep(2.1)
        assert service.payloads == [b"another"]
        await asyncio.sleep(1_000)
    assert len(service.delivered) == 11
    assert all(0 <= delivered.late < 0.01 for delivered in service.delivered)


async def test_a_message_waits_when_the_clock_is_set_back_a_moment_before_it_is_due(service: Service) -> None:
    async with service.store() as delayed:
        await delayed.schedule(b"payload", at=BEGIN + 0.3)
        await asyncio.sleep(0.29)
        service.wall.offset -= 100
        await asyncio.sleep(100)
        assert service.payloads == []
        await asyncio.sleep(0.1)
    [delivered] = service.delivered
    assert 0 <= delivered.late < 0.002


async def test_a_clock_that_goes_back_and_forth_loses_and_doubles_nothing(service: Service) -> None:
    async with service.store() as delayed:
        for number in range(200):
            await delayed.schedule(b"%d" % number, at=BEGIN + number / 2)
        for step in (0.3, -0.3, 40, -200, 150, 0.004, -0.004, -3_600, 3_601):
            await asyncio.sleep(3)
            service.wall.offset += step
        await asyncio.sleep(300)
    assert sorted(map(int, service.payloads)) == list(range(200))
    assert all(delivered.late >= 0 for delivered in service.delivered)


async def test_a_clock_that_was_set_far_ahead_for_a_moment_does_no_harm(service: Service) -> None:
    async with service.store() as delayed:
        await delayed.schedule(b"before", at=BEGIN + 5_000)
        service.wall.offset += 1_000
        await asyncio.sleep(20)
        service.wall.offset -= 1_000
        await asyncio.sleep(20)
        await delayed.schedule(b"after", at=BEGIN + 900)
        receipt = await delayed.schedule(b"cancelled", at=BEGIN + 901)
        assert await delayed.cancel(receipt)
        await asyncio.sleep(6_000)
    assert service.payloads == [b"after", b"before"]
    assert all(0 <= delivered.late < 0.002 for delivered in service.delivered)


async def test_the_next_attempt_does_not_wait_for_a_clock_that_was_set_back(service: Service) -> None:
    async def handle(attempt: Delivered) -> None:
        if len(service.attempts) == 1:
            raise ValueError

    service.handle = handle
    async with service.store(backoff=2) as delayed:
        await delayed.schedule(b"payload", at=BEGIN + 0.5)
        await asyncio.sleep(1)
        service.wall.offset -= 3_600
        await asyncio.sleep(2)
        assert service.payloads == [b"payload"]


async def test_a_store_that_was_closed_for_longer_than_any_turn_delivers_all_that_is_due(
    service: Service,
) -> None:
    delays = [1, 15, 45, 3_000, 80_000, 100 * 86_400]
    async with service.store() as delayed:
        for delay in delays:
            await delayed.schedule(b"%d" % delay, at=BEGIN + delay)
    service.wall.offset += 30 * 86_400
    async with service.store(workers=1):
        await asyncio.sleep(1)
        assert service.payloads == [b"%d" % delay for delay in delays[:-1]]
        service.wall.offset += 70 * 86_400
        await asyncio.sleep(11)
        assert service.payloads == [b"%d" % delay for delay in delays]
    assert service.files("slots") == []


async def test_times_before_1970_are_times(service: Service) -> None:
    service.wall.offset = -10.0
    async with service.store() as delayed:
        await delayed.schedule(b"before", at=-5.0)
        await delayed.schedule(b"after", at=30.0)
        await asyncio.sleep(5.1)
        assert service.payloads == [b"before"]
        await asyncio.sleep(35.1)
    assert service.payloads == [b"before", b"after"]
