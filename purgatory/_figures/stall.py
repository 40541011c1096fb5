"""Measures how late the event loop runs its callbacks."""

from __future__ import annotations

import asyncio
from collections import deque
from math import inf
from typing import Final

from purgatory._core.timer import clock_of

PERIOD: Final = 0.02
"""Seconds between two probes. A measured stall is shorter than the real one, by at most this much."""


class StallProbe:
    """Runs every `PERIOD` on the loop while somebody looks, and records how late it runs.

    It goes on for `linger` seconds after somebody has looked. It remembers the last `window` seconds.
    """

    def __init__(self, window: int, linger: float) -> None:
        self._window = window
        self._linger = linger
        self._until = -inf
        # For each second with a probe: (second, the longest delay in seconds).
        self._worst: deque[tuple[int, float]] = deque(maxlen=window + 1)
        self._handle: asyncio.TimerHandle | None = None
        # When the next probe is due, while there is one.
        self._due = inf

    def look(self, now: float) -> None:
        """Measure from the loop's time `now` on."""
        self._until = now + self._linger
        if self._handle is None:
            self._arm(asyncio.get_running_loop(), now)

    def worst(self, now: float) -> list[float | None]:
        """The longest delay in each second of the window, in seconds; None for seconds without a probe.

        Any thread may call it.
        """
        worst = dict(self._worst.copy())
        last = int(now)
        return [worst.get(second) for second in range(last - self._window, last)]

    def overdue(self, now: float) -> float:
        """For how long a probe has been due, in seconds. 0 if none is. Any thread may call it."""
        return max(0.0, now - self._due)

    def _arm(self, loop: asyncio.AbstractEventLoop, now: float) -> None:
        self._due = now + PERIOD
        self._handle = loop.call_later(PERIOD, self._probe, loop)

    def _probe(self, loop: asyncio.AbstractEventLoop) -> None:
        now = clock_of(loop)()
        second, late = int(now), self.overdue(now)
        if self._worst and self._worst[-1][0] == second:
            late = max(late, self._worst.pop()[1])
        self._worst.append((second, late))
        self._handle, self._due = None, inf
        if now < self._until:
            self._arm(loop, now)
