"""The load test of Kafka's timing wheels, for asyncio: requests at ever higher rates.

The design note "Apache Kafka, Purgatory, and Hierarchical Timing Wheels" (Confluent, 2015) compares the
request purgatory of Kafka 0.8 with the one on timing wheels by Kafka's own `kafka.TestPurgatoryPerformance`.
Requests arrive as a Poisson process, whether or not earlier ones have ended. The time to complete one is
log-normal, given by its median and third quartile; requests that take longer than the timeout expire.

This suite does what that test does by its source (core/src/test/scala/other/kafka in apache/kafka):

- All requests watch the same keys, so a watch list holds everything that is pending.
- Completing a request completes that operation itself (`forceComplete`). No key is checked.
- Only requests that complete before their timeout are handed to the source of completions.

It differs in this: arrivals and completions are drawn before the run, the same for all designs; one
event loop does the work of three threads; and a run that has fallen behind is cut short.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks.designs import KAFKAS
from benchmarks.designs.alternative import RoundTrips
from benchmarks.designs.kafka_08 import DelayedRequest, Kafka08
from benchmarks.designs.kafka_today import DelayedOperation, KafkaToday
from benchmarks.designs.purgatory_waits import CountedWait, PurgatoryCallback
from benchmarks.harness.benchmark import (
    Case,
    Parts,
    Sample,
    Setting,
    Table,
    benchmark,
    medians,
    percentiles,
    spreads,
)
from benchmarks.harness.event_loop import run
from benchmarks.suites.load.generator import BEHIND_MS, Generator
from benchmarks.suites.load.plan import LONG, SHORT, Distribution, Plan

RATES = (25_000, 100_000, 200_000, 400_000), (25_000, 50_000, 100_000, 150_000, 200_000, 300_000, 400_000)
DESIGNS: tuple[type[RoundTrips], ...] = (PurgatoryCallback, *KAFKAS)
Clock = Callable[[], float]


@benchmark("load-short", f"requests at ever higher rates: {SHORT}", *RATES, time_limit=60.0)
def short(setting: Setting) -> Parts:
    return load(setting, SHORT)


@benchmark("load-long", f"requests at ever higher rates: {LONG}", *RATES, time_limit=60.0)
def long(setting: Setting) -> Parts:
    return load(setting, LONG)


def load(setting: Setting, distribution: Distribution) -> Parts:
    """The sizes are rates."""
    yield Table(
        f"Requests for {setting.seconds:g} s at the rate that the section tells",
        spreads(achieved="achieved/s")
        + medians(behind_ms="behind, ms", cpu_seconds="CPU s", late_p99_ms="late p99, ms", held="held"),
        "Achieved: requests per second, until the last has ended. Behind: by how much the last arrival came "
        f"later than planned. A design that is more than {BEHIND_MS:g} ms behind does not keep up with the "
        "rate, and gets no more requests. Processor time of the whole process. Late: how much later than "
        "their timeout requests expired. Held: the entries in the watch lists when the last request had "
        "ended. The generator alone is what the load itself costs.",
    )
    for rate in setting.sizes:
        section, draw = f"{rate:,} requests/s", partial(Plan.draw, distribution, rate, setting.seconds)
        yield from setting.cases(section, DESIGNS, partial(follow, setting.loop, draw))
        yield Case(section, "the generator alone", partial(follow, setting.loop, draw, None))


def follow(loop: str, draw: Callable[[], Plan], design: type[RoundTrips] | None) -> Sample:
    """Follow a plan with a design, or without any, which is the generator's part in any run."""
    plan = draw()
    sample: Sample = run(loop, measure, design, plan) if design else run(loop, measure_generator, plan)
    return sample


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


REQUESTS: dict[type[RoundTrips], Any] = {
    PurgatoryCallback: PurgatoryRequest,
    KafkaToday: KafkaRequest,
    Kafka08: Kafka08Request,
}


async def measure(design: type[RoundTrips], plan: Plan, clock: Clock = time.monotonic) -> Sample:
    """Put a design under the load of `plan`. Raises AssertionError when requests do not end exactly once."""
    generator, keys = Generator(plan, clock), tuple(range(plan.distribution.keys))
    request_type = REQUESTS[design]
    gc.collect()
    before = time.process_time()
    async with design(generator) as alternative:
        timeout, watch = plan.timeout, alternative.watch

        def offer(number: int) -> Any:
            request = request_type(timeout, number, generator)
            watch(request, keys)
            return request

        await generator.walk(offer, lambda request: request.end())
        await generator.expirations()
        spent = time.process_time() - before
        held = alternative.held
    over = max(generator.over, max(generator.expired_at))
    figures = generator.figures(over - generator.started - plan.tail(generator.sent), spent)
    figures |= {"completed": generator.completed - generator.expired, "expired": generator.expired}
    figures["held"] = held
    times = zip(generator.arrived_at, generator.expired_at, strict=True)
    late = [(expired - arrived - timeout) * 1e3 for arrived, expired in times if expired]
    return figures | (percentiles(late, "late_") if late else {})


async def measure_generator(plan: Plan, clock: Clock = time.monotonic) -> Sample:
    """Follow `plan` without any design."""
    generator = Generator(plan, clock)
    gc.collect()
    before = time.process_time()
    await generator.walk(lambda number: number, lambda _: None)
    spent = time.process_time() - before
    return generator.figures(generator.arrived_at[generator.sent - 1] - generator.started, spent)
