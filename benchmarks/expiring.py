"""Parks waits whose deadlines lie ahead, lets all of them expire, and watches the loop meanwhile."""

from __future__ import annotations

import enum
import gc
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Generic, TypeVar

from benchmarks.constructs import Construct, Key, Tally
from benchmarks.heartbeat import CollectorPauses, Heartbeat
from benchmarks.loops import run, turns
from benchmarks.park_and_complete import TIMEOUT, TURNS_TO_PARK

T = TypeVar("T", bound=Tally)


class Collector(enum.Enum):
    """What is done about the garbage collector."""

    ON = "collector on"
    # What its documentation advises for what stays: it is not looked at any more.
    FROZEN = "collector on, after gc.freeze()"
    # The control: whatever stall is left is not the collector's.
    OFF = "collector off"


@dataclass(frozen=True)
class Expiration(Generic[T]):
    """What was seen while everything expired."""

    tally: T
    heartbeat: Heartbeat
    pauses: CollectorPauses
    # From the first deadline until nothing was left.
    seconds: float
    # What the collection before freezing took, with everything pending.
    collection: float | None


@dataclass
class Expiring:
    """Waits of one construct, one for each target, due at the first deadline plus its offset in seconds."""

    construct_type: type[Construct[Key]]
    targets: Sequence[Key]
    offsets: Sequence[float]
    collector: Collector
    # Seconds from the start of parking to the first deadline, once known.
    lead: float = 0.0

    def expire(self, loop: str, tally_for: Callable[[Sequence[float]], T]) -> Expiration[T]:
        """Let them expire on a fresh loop, counted by a tally made for the deadlines in time.monotonic()."""
        if not self.lead:
            run(loop, self._estimate())
        while True:
            gc.collect()
            if self.collector is Collector.OFF:
                gc.disable()
            try:
                expiration = run(loop, self._attempt(tally_for))
            finally:
                gc.unfreeze()
                gc.enable()
            if expiration is not None:
                return expiration

    async def _estimate(self) -> None:
        """Find a first lead, by parking some of them."""
        some = self.targets[: len(self.targets) // 50]
        start = time.monotonic()
        async with self.construct_type(Tally()) as construct:
            construct.park(range(len(some)), some, repeat(TIMEOUT))
            await turns(TURNS_TO_PARK)
            parking = (time.monotonic() - start) * 50
        # Many take longer each than some do, because of the collector; a microsecond each for freezing.
        self.lead = 0.1 + 2.5 * parking + 1e-6 * len(self.targets)

    async def _attempt(self, tally_for: Callable[[Sequence[float]], T]) -> Expiration[T] | None:
        """None, and a longer lead from now on, when the first deadline came before all were parked."""
        first = time.monotonic() + self.lead
        deadlines = [first + offset for offset in self.offsets]
        tally = tally_for(deadlines)
        async with self.construct_type(tally) as construct:
            construct.park(range(len(deadlines)), self.targets, self._timeouts(deadlines))
            await turns(TURNS_TO_PARK)
            if self.collector is not Collector.OFF:
                gc.enable()
            collection = None
            if self.collector is Collector.FROZEN:
                start = time.monotonic()
                gc.collect()
                collection = time.monotonic() - start
                gc.freeze()
            ahead = first - time.monotonic()
            if ahead < 0:
                self.lead = 2 * (self.lead - ahead)
                # What is abandoned here would complain when the loop is closed.
                construct.loop.set_exception_handler(lambda _loop, _context: None)
                return None
            # Next time what it really takes, and some more.
            self.lead = 0.1 + 1.5 * (self.lead - ahead)
            heartbeat = Heartbeat()
            with CollectorPauses() as pauses:
                await heartbeat.until(lambda: tally.expired == len(deadlines), pauses)
            seconds = time.monotonic() - first
        if tally.completed:
            raise AssertionError(f"{construct.name}: {tally.completed} waits completed instead of expiring")
        return Expiration(tally, heartbeat, pauses, seconds, collection)

    def _timeouts(self, deadlines: Sequence[float]) -> Iterator[float]:
        """How much is left until each deadline, by the clock at the moment when it is asked for.

        A collection between that moment and the one when the construct looks at the clock would pass for
        lateness. So if one has become due it happens here: at the allocation of a container, with the
        collector on for just that moment. Which leaves it off: the last one is not asked for another.
        """
        if self.collector is Collector.OFF:
            for deadline in deadlines:
                yield deadline - time.monotonic()
            return
        for deadline in deadlines:
            gc.enable()
            _due: set[object] = set()
            gc.disable()
            yield deadline - time.monotonic()
