"""A delivery schedules the next message of its own id: recurring jobs."""

from __future__ import annotations

import asyncio

import pytest

from purgatory.delayed import IdTaken
from tests.delayed.service import BEGIN, Delivered, Service
from tests.delayed.storage.simulated_disk import EVERYTHING, SimulatedDisk


async def test_a_delivery_schedules_the_next_message_of_its_own_id(service: Service) -> None:
    async def handle(attempt: Delivered) -> None:
        await delayed.schedule(attempt.payload, at=attempt.due + 60, id=attempt.id)

    service.handle = handle
    async with service.store() as delayed:
        await delayed.schedule(b"payload", at=BEGIN + 1, id="report")
        await asyncio.sleep(300)
        next_one = await delayed.find("report")
        assert next_one is not None
        assert next_one.due == BEGIN + 301
        assert await delayed.cancel(next_one)
        await asyncio.sleep(300)
    assert [delivered.due - BEGIN for delivered in service.delivered] == [1, 61, 121, 181, 241]
    assert service.files("slots") == []


async def test_a_delivery_that_is_tried_again_schedules_the_same_next_message(service: Service) -> None:
    async def handle(attempt: Delivered) -> None:
        await delayed.schedule(attempt.payload, at=attempt.due + 60, id=attempt.id)
        if len(service.attempts) < 3:
            raise ValueError

    service.handle = handle
    async with service.store() as delayed:
        await delayed.schedule(b"payload", at=BEGIN + 1, id="report")
        await asyncio.sleep(70)
        assert delayed.statistics().scheduled == 3
    assert [delivered.due - BEGIN for delivered in service.delivered] == [1, 61]


@pytest.mark.parametrize("seconds", [5, 60])
async def test_after_a_crash_the_next_message_is_there_once(service: Service, seconds: float) -> None:
    """The crash comes when the next message is on the disk, and the end of this one is not."""

    async def crash(attempt: Delivered) -> None:
        await delayed.schedule(attempt.payload, at=attempt.due + seconds, id=attempt.id)
        crashed.append(service.disk.after_power_cut(EVERYTHING))

    async def handle(attempt: Delivered) -> None:
        await delayed.schedule(attempt.payload, at=attempt.due + seconds, id=attempt.id)

    crashed: list[SimulatedDisk] = []
    service.handle = crash
    async with service.store() as delayed:
        await delayed.schedule(b"payload", at=BEGIN + 1, id="report")
        await asyncio.sleep(1.1)
    service.disk, service.handle = crashed[0], handle
    service.delivered.clear()
    async with service.store() as delayed:
        await asyncio.sleep(2.5 * seconds)
    assert [delivered.due - BEGIN for delivered in service.delivered] == [1, 1 + seconds, 1 + 2 * seconds]


async def test_an_id_is_taken_again_once_its_next_message_is_scheduled(service: Service) -> None:
    async def handle(attempt: Delivered) -> None:
        await delayed.schedule(b"next", at=BEGIN + 60, id="report")
        with pytest.raises(IdTaken):
            await delayed.schedule(b"another", at=BEGIN + 61, id="report")

    service.handle = handle
    async with service.store(attempts=1) as delayed:
        await delayed.schedule(b"payload", at=BEGIN + 1, id="report")
        await asyncio.sleep(10)
        assert [letter async for letter in delayed.dead_letters()] == []
        assert [message.payload async for message in delayed.pending()] == [b"next"]


async def test_the_same_message_is_no_next_message(service: Service) -> None:
    async def handle(attempt: Delivered) -> None:
        await delayed.schedule(attempt.payload, at=attempt.due, id=attempt.id)

    service.handle = handle
    async with service.store() as delayed:
        await delayed.schedule(b"payload", at=BEGIN + 1, id="report")
        await asyncio.sleep(100)
    assert len(service.delivered) == 1
