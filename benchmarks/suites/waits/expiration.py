"""Parks waits whose deadlines lie ahead, lets all of them expire, and watches the loop meanwhile."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Generic, TypeVar

from benchmarks.designs.alternative import TIMEOUT, TURNS_TO_PARK, Tally, WaitAlternative, targets
from benchmarks.harness.event_loop import CollectorPauses, CollectorSetting, Heartbeat, run, turns

T = TypeVar("T", bound=Tally)


@dataclass(frozen=True)
class Expiration(Generic[T]):
    """The observations while everything expired."""

    tally: T
    heartbeat: Heartbeat
    pauses: CollectorPauses
    # From the first deadline until nothing was left.
    seconds: float


def let_expire(
    loop: str,
    alternative: type[WaitAlternative],
    offsets: Sequence[float],
    collector: CollectorSetting,
    tally_for: Callable[[Sequence[float]], T],
) -> Expiration[T]:
    """Let one wait for each offset expire, ten on a key, at the first deadline plus its offset in seconds.

    `tally_for` makes the tally from the deadlines, in time.monotonic().
    """
    with collector.applied():
        lead = run(loop, _estimate(alternative, len(offsets)))
    while True:
        with collector.applied():
            expiration, missed = run(loop, _attempt(alternative, offsets, collector, lead, tally_for))
        if expiration is not None:
            return expiration
        lead = 2 * (lead + missed)


async def _estimate(alternative_type: type[WaitAlternative], waits: int) -> float:
    """The seconds before the first deadline at which to begin, from parking some of the waits."""
    some = -(-waits // 50)
    # Of processor time: a moment that another process takes would count fifty times.
    start = time.process_time()
    async with alternative_type(Tally()) as alternative:
        alternative.park(range(some), targets(some, 1), repeat(TIMEOUT))
        await turns(TURNS_TO_PARK)
        parking = (time.process_time() - start) * waits / some
    # With many waits each takes longer, because of the collector.
    return 0.1 + 2.5 * parking


async def _attempt(
    alternative_type: type[WaitAlternative],
    offsets: Sequence[float],
    collector: CollectorSetting,
    lead: float,
    tally_for: Callable[[Sequence[float]], T],
) -> tuple[Expiration[T] | None, float]:
    """None, and the seconds by which parking was too slow, if the first deadline came before its end."""
    watched = targets(len(offsets), 1)
    first = time.monotonic() + lead
    deadlines = [first + offset for offset in offsets]
    tally = tally_for(deadlines)
    async with alternative_type(tally) as alternative:
        alternative.park(range(len(deadlines)), watched, _timeouts(deadlines, collector))
        await turns(TURNS_TO_PARK)
        if collector is not CollectorSetting.OFF:
            gc.enable()
        missed = time.monotonic() - first
        if missed > 0:
            # Tasks that are abandoned here would complain when the loop is closed.
            alternative.loop.set_exception_handler(lambda _loop, _context: None)
            return None, missed
        heartbeat, pauses = Heartbeat(), CollectorPauses()
        with pauses.watched():
            await heartbeat.until(lambda: tally.expired == len(deadlines), pauses)
        seconds = time.monotonic() - first
    if tally.completed:
        raise AssertionError(f"{alternative.name}: {tally.completed} waits completed instead of expiring")
    return Expiration(tally, heartbeat, pauses, seconds), 0.0


def _timeouts(deadlines: Sequence[float], collector: CollectorSetting) -> Iterator[float]:
    """The time left until each deadline, by the clock at the moment when the timeout is asked for.

    A collection between that moment and the one when the alternative reads the clock would count as lateness.
    So a collection that has become due happens here: at the allocation of a container, with the collector on
    for just that moment. The generator leaves the collector off.
    """
    for deadline in deadlines:
        if collector is not CollectorSetting.OFF:
            gc.enable()
            _due: set[object] = set()
            gc.disable()
        yield deadline - time.monotonic()
