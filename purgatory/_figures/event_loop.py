"""What only the event loop of a purgatory can tell: the age of the oldest operation, and stalls."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Final

from purgatory import Purgatory
from purgatory._core.timer import clock_of
from purgatory._figures.figure import Figure, Metric
from purgatory._figures.sources import Sources
from purgatory._figures.stall import StallProbe
from purgatory.observer import first_watchers, timing_of

WINDOW: Final = 60
"""Seconds whose longest stall is shown."""

LINGER: Final = 150.0
"""Seconds for which the loop is measured after a reader has asked. Scrapes are up to two minutes apart."""

PATIENCE: Final = 0.5
"""Seconds that a reader in another thread waits for the loop."""

BLOCKED: Final = 0.1
"""Seconds of a stall in which a reader in another thread does not wait for the loop."""

KEYS: Final = 1000
"""The keys whose first operations are looked at: those that have been watched for longest."""

LOOP_FIGURES: Final = (
    Figure(
        "oldest_age",
        "Oldest",
        Metric(
            "purgatory_oldest_age_seconds",
            "How long the oldest pending operation has waited; 0 if none waits.",
            "purgatory.operation.oldest.age",
            "s",
        ),
    ),
    Figure(
        "loop_stall",
        "Worst stall",
        Metric(
            "purgatory_loop_stall_seconds",
            "The longest time in the last minute for which something has blocked the event loop.",
            "purgatory.loop.stall",
            "s",
        ),
    ),
)


@dataclass(frozen=True, slots=True)
class LoopStatistics:
    """What the loop tells. Each figure is None when it is not known. Both are seconds."""

    oldest_age: float | None = None
    loop_stall: float | None = None


class LoopSources(Sources):
    """The event loops of some purgatories. One probe measures each loop while somebody reads."""

    def __init__(self) -> None:
        super().__init__(LOOP_FIGURES)
        self._probes: dict[asyncio.AbstractEventLoop, StallProbe] = {}

    def add_loop_of(self, purgatory: Purgatory) -> None:
        """Add the loop on which `purgatory` is open, now or later."""
        self.add(LoopSource(purgatory, self._probes), purgatory)


class LoopSource:
    """Reads the figures in the thread of the purgatory's loop. `probes` has the probe of each loop."""

    def __init__(self, purgatory: Purgatory, probes: dict[asyncio.AbstractEventLoop, StallProbe]) -> None:
        self._purgatory = purgatory
        self._probes = probes

    def statistics(self) -> LoopStatistics:
        """The present figures. Any thread may call it.

        In another thread, it waits up to `PATIENCE` for the loop. Where that thread runs an event loop of its
        own, it does not wait, and nothing is known.
        """
        if not self._purgatory.open or (loop := self._purgatory._engine.loop) is None:
            return LoopStatistics()
        now = clock_of(loop)()
        if not isinstance(loop, asyncio.AbstractEventLoop):
            # A manual clock of the tests, which nothing can block.
            return LoopStatistics(self._oldest_age(now), 0.0)
        here = _loop_of_this_thread()
        if here is loop:
            return self._look(loop)
        probe = self._probes.get(loop)
        if probe is not None and loop.is_running() and probe.overdue(now) > BLOCKED:
            return LoopStatistics(loop_stall=_longest(probe, now))
        answers = SimpleQueue[LoopStatistics]()
        # The loop may end at any moment.
        with suppress(Empty, RuntimeError):
            if here is None and loop.is_running():
                loop.call_soon_threadsafe(lambda: answers.put(self._look(loop)))
                return answers.get(timeout=PATIENCE)
        return LoopStatistics()

    def _look(self, loop: asyncio.AbstractEventLoop) -> LoopStatistics:
        now = clock_of(loop)()
        # The loop of another thread may look at the same time.
        for other in [each for each in list(self._probes) if each.is_closed()]:
            self._probes.pop(other, None)
        probe = self._probes.setdefault(loop, StallProbe(WINDOW, LINGER))
        probe.look(now)
        return LoopStatistics(self._oldest_age(now), _longest(probe, now))

    def _oldest_age(self, now: float) -> float | None:
        """The age of the oldest operation. None when all operations came before somebody observed."""
        if not self._purgatory.statistics().pending:
            return 0.0
        timings = [timing_of(operation) for operation in first_watchers(self._purgatory, KEYS)]
        return max((now - timing.offered for timing in timings if timing is not None), default=None)


def _longest(probe: StallProbe, now: float) -> float:
    return max([probe.overdue(now), *[late for late in probe.worst(now) if late is not None]])


def _loop_of_this_thread() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
