"""How long the slices of bulk work last, so that it and the others on the loop both get their share."""

from __future__ import annotations

import asyncio
from typing import Final, final

from purgatory._core.timer import clock_of

# A timer that came due during a slice runs in the first turn, behind the task that pauses. It wakes its own
# task, which runs in the second turn. With fewer turns a task that sleeps for a millisecond waits for two or
# three slices instead of one. A task that an operation wakes runs in the first turn, and that of
# `purgatory.web.poll` in the second one, because it is interrupted first.
TURNS: Final = 3

# The first slice is that much shorter than the others. An answer to a client takes about twenty times as long
# as the end of the operation that it waited for, and the first slice does not know yet what it wakes. When
# those whom it wakes ask again at once, the loop serves them before a slice can know that.
FIRST: Final = 64

# Others wait behind those who ask again when one in so many of those who were woken has done so.
OVERTAKEN: Final = 8

# A slice lasts at most so many times, and at least this part of, `slice_seconds`. The shortest one ends an
# operation or two.
LONGEST: Final = 200
SHORTEST: Final = 0.001


@final
class Pace:
    """Says how long the next slice of bulk work may last, from what the last one did to the loop.

    A slice of 5 ms ends a thousand operations. The tasks that await them then hold the loop for twenty times
    as long. So a slice counts together with what it wakes, and the two take `slice_seconds`. Where others
    hold the loop for longer than that between two slices, the slice and what it wakes take as long as they
    did. So bulk work gets half of a busy loop. Where those who were woken wait again, it gets all of it.

    What is woken stands in the loop's queue between a callback that was put there before the slice and the
    pausing task, which comes after it. What these tasks schedule stands between the two in the next turn.
    """

    __slots__ = (
        "_began",
        "_clock",
        "_marked",
        "_seen",
        "_slice_seconds",
        "_turn_began",
        "_working",
        "seconds",
    )

    def __init__(self, slice_seconds: float) -> None:
        self._clock = clock = clock_of(asyncio.get_running_loop())
        self._slice_seconds = slice_seconds
        # How long the next slice may last, without what it wakes.
        self.seconds = slice_seconds / FIRST
        self._began = clock()
        # The callback before a slice runs in so many more turns, and it ran last at this time. The first
        # slice has no such callback, because most bulk work has only that slice.
        self._marked = 0
        self._turn_began: float | None = None
        # How many operations had ended before the last slice. Their clients have had a pause to ask again.
        self._seen = 0
        # Whether the tasks that a slice wakes work for longer than the slice.
        self._working = False

    async def pause(self) -> None:
        """Let the loop run for three turns after a slice. The next one begins when this returns."""
        clock = self._clock
        ended = clock()
        taken = ended - self._began
        woken = 0.0
        for _ in range(TURNS):
            await asyncio.sleep(0)
            if self._turn_began is not None:
                woken += clock() - self._turn_began
        paused = clock() - ended
        if self._turn_began is None:
            woken = paused
        share = max(self._slice_seconds, min(paused - woken, LONGEST * self._slice_seconds))
        # By the clock, a slice that is shorter than its resolution takes no time.
        own = taken / (taken + woken) if taken else 0.0
        self.seconds = max(share * own, SHORTEST * self._slice_seconds)
        self._working = woken > taken
        self._marked = TURNS
        self._began = self._turn_began = clock()
        asyncio.get_running_loop().call_soon(self._mark)

    def heed(self, ended: int, newcomers: int) -> None:
        """After a pause: so many have ended by this work, and so many wait that have come since it began.

        When those who were woken ask again, the loop serves them in each pause, before it wakes the others.
        Mostly that takes longer than an answer. So there are no more pauses for a while.
        """
        if self._working and newcomers * OVERTAKEN > self._seen > 0:
            self.seconds = LONGEST * self._slice_seconds
        self._seen = ended

    def _mark(self) -> None:
        self._turn_began = self._clock()
        self._marked -= 1
        if self._marked:
            asyncio.get_running_loop().call_soon(self._mark)
