"""Parks waits whose deadlines lie ahead, lets all of them expire, and watches the loop meanwhile."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Generic, TypeVar

from benchmarks.collector_setting import CollectorSetting
from benchmarks.constructs import TIMEOUT, Construct, Tally
from benchmarks.heartbeat import CollectorPauses, Heartbeat
from benchmarks.loops import run, turns
from benchmarks.waits import TURNS_TO_PARK, targets

T = TypeVar("T", bound=Tally)


@dataclass(frozen=True)
class Expiration(Generic[T]):
    """What was seen while everything expired."""

    tally: T
    heartbeat: Heartbeat
    pauses: CollectorPauses
    # From the first deadline until nothing was left.
    seconds: float


@dataclass(frozen=True)
class Expiring:
    """Waits of one construct, ten on a key, due at the first deadline plus their offsets in seconds."""

    construct_type: type[Construct]
    offsets: Sequence[float]
    collector: CollectorSetting

    def expire(self, loop: str, tally_for: Callable[[Sequence[float]], T]) -> Expiration[T]:
        """Let them expire on a fresh loop, counted by a tally made for the deadlines in time.monotonic()."""
        with self.collector.applied():
            lead = run(loop, self._estimate())
        while True:
            with self.collector.applied():
                expiration, missed = run(loop, self._attempt(lead, tally_for))
            if expiration is not None:
                return expiration
            lead = 2 * (lead + missed)

    async def _estimate(self) -> float:
        """How many seconds before the first deadline to begin, by parking some of them."""
        waits = len(self.offsets)
        some = -(-waits // 50)
        # Of processor time, or a moment given to somebody else would count fifty times.
        start = time.process_time()
        async with self.construct_type(Tally()) as construct:
            construct.park(range(some), targets(some, 1), repeat(TIMEOUT))
            await turns(TURNS_TO_PARK)
            parking = (time.process_time() - start) * waits / some
        # Many take longer each than some do, because of the collector.
        return 0.1 + 2.5 * parking

    async def _attempt(
        self, lead: float, tally_for: Callable[[Sequence[float]], T]
    ) -> tuple[Expiration[T] | None, float]:
        """None, and by how many seconds it was missed, if the first deadline came before all were parked."""
        watched = targets(len(self.offsets), 1)
        first = time.monotonic() + lead
        deadlines = [first + offset for offset in self.offsets]
        tally = tally_for(deadlines)
        async with self.construct_type(tally) as construct:
            construct.park(range(len(deadlines)), watched, self._timeouts(deadlines))
            await turns(TURNS_TO_PARK)
            if self.collector is not CollectorSetting.OFF:
                gc.enable()
            missed = time.monotonic() - first
            if missed > 0:
                # What is abandoned here would complain when the loop is closed.
                construct.loop.set_exception_handler(lambda _loop, _context: None)
                return None, missed
            heartbeat = Heartbeat()
            with CollectorPauses() as pauses:
                await heartbeat.until(lambda: tally.expired == len(deadlines), pauses)
            seconds = time.monotonic() - first
        if tally.completed:
            raise AssertionError(f"{construct.name}: {tally.completed} waits completed instead of expiring")
        return Expiration(tally, heartbeat, pauses, seconds), 0.0

    def _timeouts(self, deadlines: Sequence[float]) -> Iterator[float]:
        """How much is left until each deadline, by the clock at the moment when it is asked for.

        A collection between that moment and the one when the construct looks at the clock would pass for
        lateness. So if one has become due it happens here: at the allocation of a container, with the
        collector on for just that moment. Which leaves it off: the last one is not asked for another.
        """
        if self.collector is CollectorSetting.OFF:
            for deadline in deadlines:
                yield deadline - time.monotonic()
            return
        for deadline in deadlines:
            gc.enable()
            _due: set[object] = set()
            gc.disable()
            yield deadline - time.monotonic()
