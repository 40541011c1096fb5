"""When messages leave the waiting room, and the memory that they take there."""

from __future__ import annotations

import asyncio
import tracemalloc

from purgatory import Purgatory
from purgatory.delayed.message import Location, Message
from purgatory.delayed.waiting_room import WaitingRoom
from tests.delayed.service import BEGIN, WallClock

COUNT = 1_000


async def test_a_message_that_waits_for_another_attempt_takes_some_600_bytes(wall: WallClock) -> None:
    async with Purgatory() as purgatory:
        room = WaitingRoom(purgatory, wall, print, print, print)
        locations = [Location(int(BEGIN * 1000), 1 << 63 | n, 1 << 63 | n, 1) for n in range(COUNT)]
        tracemalloc.start()
        try:
            before, _ = tracemalloc.get_traced_memory()
            for location in locations:
                room.wait_again(location, 60)
            after, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        # The locations take the rest: a tuple and three numbers.
        assert (after - before) / COUNT < 700 - 170
        assert room.retrying == COUNT
        await purgatory.aclose(cancel_pending=True)


async def test_a_message_waits_again_when_the_clock_went_back_by_less_than_the_time_ahead(
    wall: WallClock,
) -> None:
    left: list[tuple[Message, float]] = []
    async with Purgatory() as purgatory:
        room = WaitingRoom(
            purgatory, wall, lambda message, _: left.append((message, wall())), print, lambda: None
        )
        message = Message(1, round((BEGIN + 0.3) * 1000), None, b"payload")
        room.park(message)
        wall.offset -= 0.5
        await asyncio.sleep(0.4)
        assert left == []
        await asyncio.sleep(0.5)
    [(due, at)] = left
    assert due is message
    assert 0 <= at - (BEGIN + 0.3) < 0.002


async def test_a_message_is_due_when_the_clock_is_set_forward_as_it_follows_the_clock_back() -> None:
    left: list[Message] = []
    times = iter([BEGIN, BEGIN - 10, BEGIN + 1])
    async with Purgatory() as purgatory:
        room = WaitingRoom(
            purgatory, lambda: next(times), lambda message, _: left.append(message), print, lambda: None
        )
        message = Message(1, round((BEGIN + 0.3) * 1000), None, b"payload")
        room.park(message)
        room.follow_clock()
    assert left == [message]
