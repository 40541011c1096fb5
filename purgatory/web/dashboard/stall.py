"""Measures how late the event loop runs its callbacks."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final

from purgatory._core.timer import clock_of

PERIOD: Final = 0.02
"""Seconds between two probes. A measured stall is shorter than the real one, by at most this much."""


class StallProbe:
    """Runs every `PERIOD` on the loop, from `start` to `stop`, and records how late it runs."""

    def __init__(self, window: int) -> None:
        self._window = window
        # For each second with a probe: (second, the longest delay in seconds).
        self._worst: deque[tuple[int, float]] = deque(maxlen=window + 1)
        self._handle: asyncio.TimerHandle | None = None

    def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._arm(loop, clock_of(loop)())

    def stop(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

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
        self._arm(loop, now)
