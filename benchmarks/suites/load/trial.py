"""One run of one design under load, in a process of its own, printed as JSON.

    python -m benchmarks.suites.load.trial DESIGN LOOP PLAN

The generator follows a plan in real time. It is an open loop: it waits for no request.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import time
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from math import inf
from pathlib import Path
from typing import Any

from benchmarks.designs.alternative import RoundTripAlternative, Tally
from benchmarks.designs.kafka_08 import CountedRequest, Kafka08
from benchmarks.designs.kafka_purgatory import CountedOperation, KafkaToday
from benchmarks.designs.purgatory_waits import CountedWait, PurgatoryCallback
from benchmarks.harness import event_loop
from benchmarks.harness.benchmark import percentile
from benchmarks.harness.load_test import BEHIND_MS, Measurement
from benchmarks.harness.processes import resident_bytes
from benchmarks.suites.load.plan import Plan

# Arrivals and completions in one batch: about half a millisecond's work for a fast design. Then the event
# loop iterates, in which the design's own timers run.
BATCH = 128
# Seconds to sleep when nothing is due. The poll of an event loop takes no less.
PAUSE = 0.001
# Seconds after the last timeout until requests that have not ended are given up.
PATIENCE = 60.0
# Seconds between two samples of the process's size.
SAMPLE_EVERY = 0.02

Clock = Callable[[], float]


class Ends(Tally):
    """The ends of the requests, one each. No condition ever holds, so no check completes a request."""

    __slots__ = ("arrived_at", "clock", "expired_at", "times")

    def __init__(self, requests: int, clock: Clock) -> None:
        super().__init__()
        self.clock = clock
        # All of them have their full size from the beginning: what grows in the run is the design's.
        self.arrived_at = array("d", bytes(8 * requests))
        self.expired_at = array("d", bytes(8 * requests))
        # How often each request has ended.
        self.times = bytearray(requests)

    def end(self, request: int) -> None:
        """Count that the request has completed or expired just now."""
        self.times[request] += 1
        self.completed += 1

    def expire(self, request: int) -> None:
        """Count that the timeout ended the request, which `end` has counted."""
        self.expired_at[request] = self.clock()
        self.expired += 1

    def check(self, sent: int) -> None:
        """Raise AssertionError unless each of the first `sent` requests has ended once, and no other."""
        if self.completed != sent or self.times.count(1) != sent:
            never, once = self.times[:sent].count(0), self.times[:sent].count(1)
            raise AssertionError(
                f"of {sent:,} requests {never:,} never ended and {sent - never - once:,} more than once"
            )

    def lateness(self, timeout: float) -> list[float]:
        """The seconds from its timeout to the expiration of each request that expired, ascending."""
        times = zip(self.arrived_at, self.expired_at, strict=True)
        return sorted(expired - arrived - timeout for arrived, expired in times if expired)


class CountsEnds:
    """The hooks that count the end of a request."""

    __slots__ = ()
    request: int
    tally: Any

    def on_complete(self) -> None:
        self.tally.end(self.request)

    def on_expiration(self) -> None:
        self.tally.expire(self.request)


class PurgatoryRequest(CountsEnds, CountedWait):
    """A request of this library."""

    __slots__ = ()

    def end(self) -> None:
        self.force_complete()


class KafkaRequest(CountsEnds, CountedOperation):
    """A request of Kafka's present purgatory."""

    __slots__ = ()

    def end(self) -> None:
        self.force_complete()


class Kafka08Request(CountedRequest):
    """A request of the purgatory of Kafka 0.8.

    Kafka 0.8 completes what `update` finds in walking over all requests of a key. The load test has all of
    them on the same keys, and completes single ones, which later versions can do: so does the test of the
    design note with the older design.
    """

    __slots__ = ()
    tally: Any

    def end(self) -> None:
        if not self.satisfied:
            self.satisfied = True
            self.tally.end(self.request)

    def expire(self) -> None:
        self.tally.end(self.request)
        self.tally.expire(self.request)


DESIGNS: dict[str, tuple[type[RoundTripAlternative], Callable[..., Any]]] = {
    "purgatory": (PurgatoryCallback, PurgatoryRequest),
    "kafka-now": (KafkaToday, KafkaRequest),
    "kafka-0.8": (Kafka08, Kafka08Request),
}
# In place of a design: the generator's own work.
GENERATOR = "generator"


@dataclass(frozen=True)
class Walk:
    """The outcome of following a plan, in seconds by the clock that was given."""

    sent: int
    started: float
    # When the last request completed, or arrived.
    over: float
    # By how much the last arrival came later than planned.
    behind: float


async def walk(
    plan: Plan, ends: Ends, offer: Callable[[int], Any], end: Callable[[Any], object], clock: Clock
) -> Walk:
    """Offer every request when it arrives, and end it when that is due, all in the plan's order.

    Where the design cannot keep up everything is put off, completions like arrivals, so that meanwhile as
    much is pending as planned, or more. A walk that is more than `BEHIND_MS` late when its time is over ends
    there, and only the requests that have been sent are completed: otherwise the walk would take longer the
    more overloaded the design is.
    """
    arrivals, completions, completing = plan.arrivals, plan.completions, plan.completing
    completes, arrived_at = plan.completes, ends.arrived_at
    waiting: list[Any] = [None] * len(plan)
    sent = done = 0
    arrival, completion = arrivals[0], completions[0]
    started = over = clock()
    while arrival < inf or completion < inf:
        now = clock() - started
        if now > plan.seconds + BEHIND_MS / 1e3:
            arrival = inf
        for _ in range(BATCH):
            if arrival <= completion:
                if arrival > now:
                    break
                arrived_at[sent] = clock()
                request = offer(sent)
                # The design alone holds the requests that are going to expire.
                if completes[sent]:
                    waiting[sent] = request
                sent += 1
                arrival = arrivals[sent]
            else:
                if completion > now:
                    break
                number = completing[done]
                due = waiting[number]
                if due is not None:
                    waiting[number] = None
                    end(due)
                done += 1
                completion = completions[done]
        else:
            over = clock()
            await asyncio.sleep(0)
            continue
        over = clock()
        await asyncio.sleep(PAUSE)
    return Walk(sent, started, over, arrived_at[sent - 1] - started - arrivals[sent - 1])


async def expirations(plan: Plan, ends: Ends, sent: int, clock: Clock) -> None:
    """Wait until all requests that were sent have ended. Raises AssertionError when they do not."""
    limit = clock() + plan.timeout + PATIENCE
    # An event would have to be checked at the end of each request.
    while ends.completed < sent and clock() < limit:  # noqa: ASYNC110  # see above
        await asyncio.sleep(PAUSE)
    ends.check(sent)


async def measure(
    alternative_type: type[RoundTripAlternative],
    request_type: Callable[..., Any],
    plan: Plan,
    clock: Clock = time.monotonic,
) -> Measurement:
    """Put a design under the load of `plan`. Raises AssertionError when requests do not end exactly once."""
    ends, keys = Ends(len(plan), clock), tuple(range(plan.keys))
    gc.collect()
    with resident_sizes() as sizes:
        before = time.process_time()
        async with alternative_type(ends) as alternative:
            timeout, watch = plan.timeout, alternative.watch

            def offer(number: int) -> Any:
                request = request_type(timeout, number, ends)
                watch(request, keys)
                return request

            walked = await walk(plan, ends, offer, lambda request: request.end(), clock)
            await expirations(plan, ends, walked.sent, clock)
            spent = time.process_time() - before
            held = alternative.held
    over = max(walked.over, max(ends.expired_at))
    late = [seconds * 1e3 for seconds in ends.lateness(plan.timeout)]
    return Measurement(
        achieved=walked.sent / (over - walked.started - plan.tail(walked.sent)),
        behind_ms=walked.behind * 1e3,
        sent=walked.sent,
        completed=ends.completed - ends.expired,
        expired=ends.expired,
        cpu_seconds=spent,
        late_p50_ms=percentile(late, 50) if late else None,
        late_p99_ms=percentile(late, 99) if late else None,
        held=held,
        rss_mb=(max(sizes) - sizes[0]) / 1e6 if sizes else None,
    )


async def measure_generator(plan: Plan, clock: Clock = time.monotonic) -> Measurement:
    """Follow `plan` without any design: this is the generator's part in any run."""
    gc.collect()
    before = time.process_time()
    walked = await walk(plan, Ends(len(plan), clock), lambda number: number, lambda _: None, clock)
    return Measurement(
        achieved=walked.sent / (plan.arrivals[walked.sent - 1] + walked.behind),
        behind_ms=walked.behind * 1e3,
        sent=walked.sent,
        cpu_seconds=time.process_time() - before,
    )


@contextmanager
def resident_sizes() -> Iterator[list[int]]:
    """The process's bytes in memory at first, and then every 20 ms. Empty where there is no /proc."""
    try:
        sizes = [resident_bytes("self")]
    except OSError:
        yield []
        return

    async def sample() -> None:
        while True:
            await asyncio.sleep(SAMPLE_EVERY)
            sizes.append(resident_bytes("self"))

    sampling = asyncio.get_running_loop().create_task(sample())
    try:
        yield sizes
    finally:
        sampling.cancel()


def main(design: str, loop: str, file: str) -> None:
    """Measure `design`, or the generator, on a fresh event loop, by the plan in a file."""
    plan = Plan.read(Path(file))
    trial = measure_generator(plan) if design == GENERATOR else measure(*DESIGNS[design], plan)
    print(json.dumps(asdict(event_loop.run(loop, trial))))


if __name__ == "__main__":
    main(*sys.argv[1:])
