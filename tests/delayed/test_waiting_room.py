"""The memory that messages take while they wait for another attempt."""

from __future__ import annotations

import tracemalloc

from purgatory import Purgatory
from purgatory.delayed.message import Location
from purgatory.delayed.waiting_room import WaitingRoom
from tests.delayed.service import BEGIN, WallClock

COUNT = 1_000


async def test_a_message_that_waits_for_another_attempt_takes_some_600_bytes(wall: WallClock) -> None:
    async with Purgatory() as purgatory:
        room = WaitingRoom(purgatory, wall, 1.0, print, print, print)
        locations = [Location(int(BEGIN * 1000), 1 << 63 | n, 1 << 63 | n) for n in range(COUNT)]
        tracemalloc.start()
        try:
            before, _ = tracemalloc.get_traced_memory()
            for location in locations:
                room.wait_again(location, 1, 60)
            after, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        # The locations take the rest: a tuple and three numbers.
        assert (after - before) / COUNT < 700 - 170
        assert room.retrying == COUNT
        await purgatory.aclose(cancel_pending=True)
