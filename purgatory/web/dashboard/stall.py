"""Measures how late the event loop runs its callbacks."""

from __future__ import annotations

import asyncio
from collections import deque
from math import inf
from typing import Final

from purgatory._core.timer import clock_of

PERIOD: Final = 0.02
"""Seconds between two probes. A measured stall is shorter than the real one, by at most this much."""


LINGER: Final = 10.0
"""Seconds for which the loop is measured after a viewer has looked.

Where several processes answer at one address, a viewer looks at each of them every few seconds.
"""


class StallProbe:
    """Runs every `PERIOD` on the loop while somebody looks, and records how late it runs."""

    def __init__(self, window: int) -> None:
        self._window = window
        self._until = -inf
        # For each second with a probe: (second, the longest delay in seconds).
        self._worst: deque[tuple[int, float]] = deque(maxlen=window + 1)
        self._handle: asyncio.TimerHandle | None = None

    def look(self, now: float) -> None:
        """Measure until `LINGER` after the loop's time `now`."""
        self._until = now + LINGER
        if self._handle is None:
            self._arm(asyncio.get_running_loop(), now)

    def worst(self, now: float) -> list[float | None]:
        """The longest delay in each second of the window, in seconds; None for seconds without a probe."""
        worst = dict(self._worst)
        last = int(now)
        return [worst.get(second) for second in range(last - self._window, last)]

    def _arm(self, loop: asyncio.AbstractEventLoop, now: float) -> None:
        self._handle = loop.call_later(PERIOD, self._probe, loop, now + PERIOD)

    def _probe(self, loop: asyncio.AbstractEventLoop, due: float) -> None:
        now = clock_of(loop)()
        second, late = int(now), max(0.0, now - due)
        if self._worst and self._worst[-1][0] == second:
            late = max(late, self._worst.pop()[1])
        self._worst.append((second, late))
        self._handle = None
        if now < self._until:
            self._arm(loop, now)
