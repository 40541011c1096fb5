"""One run of one design under load, in a process of its own, printed as JSON.

    python -m benchmarks.suites.load.trial DESIGN LOOP PLAN

The generator follows a plan in real time. It is an open loop: it waits for no request.
"""

import asyncio
import gc
import json
import pickle
import sys
import time
from array import array
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from math import inf
from pathlib import Path
from typing import Any

from benchmarks.designs.alternative import RoundTrips, Tally
from benchmarks.designs.kafka_08 import DelayedRequest, Kafka08
from benchmarks.designs.kafka_today import DelayedOperation, KafkaToday
from benchmarks.designs.purgatory_waits import CountedWait, PurgatoryCallback
from benchmarks.harness import event_loop
from benchmarks.harness.benchmark import Sample, percentiles
from benchmarks.harness.processes import AVAILABLE, resident_bytes
from benchmarks.suites.load import BEHIND_MS, GENERATOR, Plan

# Arrivals and completions in one batch: about half a millisecond's work for a fast design. Then the event
# loop iterates, in which the design's own timers run.
BATCH = 128
# Seconds to sleep when nothing is due. The poll of an event loop takes no less.
PAUSE = 0.001
# Seconds after the last timeout until requests that have not ended are given up.
PATIENCE = 60.0


class Generator(Tally):
    """Follows a plan, and counts how its requests end.

    No condition ever holds, so no check completes a request. All times are those of the clock.
    """

    __slots__ = ("arrived_at", "clock", "expired_at", "over", "plan", "sent", "started", "times")

    def __init__(self, plan: Plan, clock: Callable[[], float]) -> None:
        super().__init__()
        self.plan = plan
        self.clock = clock
        # All of them have their full size from the beginning: what grows in the run is the design's.
        self.arrived_at = array("d", bytes(8 * len(plan)))
        self.expired_at = array("d", bytes(8 * len(plan)))
        # How often each request has ended.
        self.times = bytearray(len(plan))
        self.sent = 0
        # `over` is when the last request completed, or arrived.
        self.started = self.over = 0.0

    def end(self, request: int) -> None:
        """Count that the request has completed or expired just now."""
        self.times[request] += 1
        self.completed += 1

    def expire(self, request: int) -> None:
        """Count that the timeout ended the request, which `end` has counted."""
        self.expired_at[request] = self.clock()
        self.expired += 1

    async def walk(self, offer: Callable[[int], Any], end: Callable[[Any], object]) -> None:
        """Offer every request when it arrives, and end it when that is due, all in the plan's order.

        Where the design cannot keep up everything is put off, completions like arrivals, so that meanwhile
        as much is pending as planned, or more. A walk that is more than `BEHIND_MS` late when its time is
        over ends there, and only the requests that have been sent are completed: otherwise the walk would
        take longer the more overloaded the design is.
        """
        plan, clock, arrived_at = self.plan, self.clock, self.arrived_at
        arrivals, completions, completing = plan.arrivals, plan.completions, plan.completing
        completes = plan.completes
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
        self.sent, self.started, self.over = sent, started, over

    async def expirations(self) -> None:
        """Wait until all requests that were sent have ended.

        Raises AssertionError unless each of them has ended once, and no other.
        """
        limit = self.clock() + self.plan.timeout + PATIENCE
        # An event would have to be checked at the end of each request.
        while self.completed < self.sent and self.clock() < limit:  # noqa: ASYNC110  # see above
            await asyncio.sleep(PAUSE)
        once = self.times.count(1)
        if not self.completed == self.sent == once:
            raise AssertionError(f"{once} of {self.sent} requests ended once, of {self.completed} ends")

    def figures(self, seconds: float, cpu_seconds: float) -> dict[str, float]:
        """What any run tells, where the requests took so many seconds."""
        last = self.sent - 1
        behind = self.arrived_at[last] - self.started - self.plan.arrivals[last]
        return {
            "achieved": self.sent / seconds,
            "behind_ms": behind * 1e3,
            "sent": self.sent,
            "cpu_seconds": cpu_seconds,
        }


class CountsEnds:
    """What a request does where the design calls the hooks of an operation."""

    __slots__ = ()
    request: int
    tally: Any

    def on_complete(self) -> None:
        self.tally.end(self.request)

    def on_expiration(self) -> None:
        self.tally.expire(self.request)

    def end(self: Any) -> None:
        self.force_complete()


class PurgatoryRequest(CountsEnds, CountedWait):
    __slots__ = ()


class KafkaRequest(CountsEnds, DelayedOperation):
    __slots__ = ()


class Kafka08Request(DelayedRequest):
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


async def measure(
    alternative_type: type[RoundTrips],
    request_type: Callable[..., Any],
    plan: Plan,
    clock: Callable[[], float] = time.monotonic,
) -> Sample:
    """Put a design under the load of `plan`. Raises AssertionError when requests do not end exactly once."""
    generator, keys = Generator(plan, clock), tuple(range(plan.distribution.keys))
    gc.collect()
    sizes = [resident_bytes("self")] if AVAILABLE else []
    sampling = asyncio.create_task(sample(sizes))
    before = time.process_time()
    async with alternative_type(generator) as alternative:
        timeout, watch = plan.timeout, alternative.watch

        def offer(number: int) -> Any:
            request = request_type(timeout, number, generator)
            watch(request, keys)
            return request

        await generator.walk(offer, lambda request: request.end())
        await generator.expirations()
        spent = time.process_time() - before
        held = alternative.held
    sampling.cancel()
    over = max(generator.over, max(generator.expired_at))
    figures = generator.figures(over - generator.started - plan.tail(generator.sent), spent)
    figures |= {"completed": generator.completed - generator.expired, "expired": generator.expired}
    figures["held"] = held
    times = zip(generator.arrived_at, generator.expired_at, strict=True)
    late = [(expired - arrived - timeout) * 1e3 for arrived, expired in times if expired]
    if late:
        figures |= percentiles(late, "late_")
    if sizes:
        figures["rss_mb"] = (max(sizes) - sizes[0]) / 1e6
    return figures


async def measure_generator(plan: Plan, clock: Callable[[], float] = time.monotonic) -> Sample:
    """Follow `plan` without any design: this is the generator's part in any run."""
    generator = Generator(plan, clock)
    gc.collect()
    before = time.process_time()
    await generator.walk(lambda number: number, lambda _: None)
    spent = time.process_time() - before
    return generator.figures(generator.arrived_at[generator.sent - 1] - generator.started, spent)


async def sample(sizes: list[int]) -> None:
    """Add the process's bytes in memory every 20 ms, where there is a /proc."""
    while AVAILABLE:
        await asyncio.sleep(0.02)
        sizes.append(resident_bytes("self"))


DESIGNS: Mapping[str, Callable[..., Coroutine[None, None, Sample]]] = {
    "purgatory": partial(measure, PurgatoryCallback, PurgatoryRequest),
    "Kafka's present design": partial(measure, KafkaToday, KafkaRequest),
    "Kafka 0.8's design": partial(measure, Kafka08, Kafka08Request),
    GENERATOR: measure_generator,
}


def main(design: str, loop: str, file: str) -> None:
    """Measure `design` on a fresh event loop, by the plan in a file, which is our own: a pickle runs code."""
    plan = pickle.loads(Path(file).read_bytes())
    print(json.dumps(event_loop.run(loop, DESIGNS[design], plan)))


if __name__ == "__main__":
    main(*sys.argv[1:])
