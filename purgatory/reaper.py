"""What drives a timer: a coroutine that sleeps until something is due, and the pace of its slices."""

from __future__ import annotations

import asyncio
from math import inf
from typing import Final, final

from purgatory._core.timer import Timer, clock_of

# A timer that came due during a slice runs in the first turn, behind the task that pauses. It wakes its own
# task, which runs in the second turn. With fewer turns a task that sleeps for a millisecond waits for two or
# three slices instead of one. A task that an operation wakes runs in the first turn, and that of
# `purgatory.web.poll` in the second one, because it is interrupted first.
TURNS: Final = 3

# The first slice takes this share of the time, and no slice takes a smaller one. An answer to a client takes
# about twenty times as long as the end of the operation that it waited for, or longer.
LEAST: Final = 1 / 64

# When one in so many of those who were woken asks again, the others wait behind these.
OVERTAKEN: Final = 8

# No slice lasts longer than so many times `slice_seconds`.
LONGEST: Final = 200


@final
class Pace:
    """Says how long the next slice of bulk work may last, from what the last one did to the loop.

    A slice of 5 ms ends a thousand operations. The tasks that await them then hold the loop for twenty times
    as long. So a slice and what it wakes take `slice_seconds` together: the next slice lasts for the share of
    the time that the last one took. Where others hold the loop for longer than that between two slices, the
    two take as long as the others did. So bulk work gets half of a busy loop.

    What a slice wakes does not run in every turn of the pause, and others do. So the shortest turn tells how
    long others hold the loop in each.
    """

    __slots__ = ("_began", "_behind", "_clock", "_seen", "_slice_seconds", "seconds")

    def __init__(self, slice_seconds: float) -> None:
        self._clock = clock_of(asyncio.get_running_loop())
        self._slice_seconds = slice_seconds
        # How long the next slice may last.
        self.seconds = slice_seconds * LEAST
        self._began = self._clock()
        # Whether the pause was longer than the slice before it.
        self._behind = False
        # How many operations had ended before the last slice. Their clients have had a pause to ask again.
        self._seen = 0

    async def pause(self) -> None:
        """Let the loop run for three turns after a slice. The next one begins when this returns."""
        clock = self._clock
        ended = now = clock()
        shortest = inf
        for _ in range(TURNS):
            turn = now
            await asyncio.sleep(0)
            now = clock()
            shortest = min(shortest, now - turn)
        taken, paused, others = ended - self._began, now - ended, TURNS * shortest
        woken = paused - others
        # By the clock, a slice that is shorter than its resolution takes no time.
        share = taken / (taken + woken) if taken else 0.0
        together = max(self._slice_seconds, min(others, LONGEST * self._slice_seconds))
        self.seconds = together * max(share, LEAST)
        self._behind = paused > taken
        self._began = now

    def heed(self, ended: int, newcomers: int) -> None:
        """After a pause: so many have ended by this work, and so many wait that have come since it began.

        When those who were woken ask again, the loop serves them in each pause, before it wakes the others.
        Mostly that takes longer than an answer. So there are no more pauses for a while. With 5,000 long
        polls that ask again at once, the p99 is then 1.1 times that of an asyncio.Event. With pauses it is
        6 times that (`python -m benchmarks longpoll --only wake-again`).
        """
        if self._behind and newcomers * OVERTAKEN > self._seen > 0:
            self.seconds = LONGEST * self._slice_seconds
        self._seen = ended


async def reap(timer: Timer) -> None:
    """Run every task of `timer` at its time, until `timer.stop()`. Yields to the loop between two slices.

    The timer has to be started. Raises RuntimeError when another reaper drives it.
    """
    timer.attach_reaper()
    pace = Pace(timer.slice_seconds)
    try:
        while not timer.stopped:
            timer.wake()
            if timer.run_due(pace.seconds):
                timer.slices += 1
                # Newcomers may be others than those who were woken, so they do not make the slices longer.
                await pace.pause()
            elif not timer.stopped:
                await timer.sleep()
                pace = Pace(timer.slice_seconds)
    finally:
        timer.detach_reaper()


async def pause() -> None:
    """Let the loop run what is ready, as between two slices, in work that is not for many operations."""
    for _ in range(TURNS):
        await asyncio.sleep(0)
