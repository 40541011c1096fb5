"""Kafka's own purgatory and timer, on the JVM, beside this library.

`KafkaPurgatory.java` does with the classes of Apache Kafka 4 (DelayedOperationPurgatory with its reaper, and
SystemTimer) what the suites `waits` and `timers` do with this library. Each process has one core. Kafka is
the reference of every section. Beside it are operations of a user's own class, and ready-made ones, on each
loop.

The JVM warms up before it is measured. Then its costs include its compiler, its collector and Kafka's purges.
"""

import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product, repeat
from typing import Any

from benchmarks.designs.alternative import TIMEOUT, WAITS_PER_KEY, RoundTrips, Tally
from benchmarks.designs.purgatory_waits import PurgatoryCallback, ReadyMade, ReadyMadeSession
from benchmarks.harness.benchmark import (
    Case,
    Parts,
    Sample,
    Setting,
    Table,
    at_sizes,
    benchmark,
    medians,
    spreads,
)
from benchmarks.harness.event_loop import LOOPS, CollectorSetting, run
from benchmarks.harness.processes import ROOT, one_core, output_of
from benchmarks.suites import waits
from benchmarks.suites.timers import CoreTimer, add_and_cancel
from benchmarks.suites.waits.expiry import lateness

# `make kafka` puts the jars there.
JARS = ROOT / "build" / "kafka"
SOURCE = ROOT / "benchmarks" / "suites" / "kafka" / "KafkaPurgatory.java"
CLASSES = ROOT / "build" / "kafka-purgatory"
# The collector that the JVM chooses on one core, with memory enough to run seldom.
JAVA = ("java", "-XX:+UseSerialGC", "-Xms3g", "-Xmx3g", "-cp", f"{CLASSES}:{JARS}/*", SOURCE.stem)
KAFKA = "Kafka, on the JVM"
# Times as long as it is measured.
WARM_UP = 5
# A key that all waits share beside their own.
SHARED = -1
ADVISED = CollectorSetting.ADVISED
NOTE = "Processor time of a process with one core. Python's collector as the README advises."
# Seconds for all repetitions of a case, which are few.
LIMIT = 120.0


def prepare() -> None:
    """Compile the Java program, unless that is done. RuntimeError where a compiler or Kafka is missing."""
    if shutil.which("javac") is None or not (JARS / ".built").exists():
        raise RuntimeError("the suite kafka needs a JDK, and Kafka's jars: run `make kafka`")
    compiled = CLASSES / f"{SOURCE.stem}.class"
    if not compiled.exists() or compiled.stat().st_mtime < SOURCE.stat().st_mtime:
        output_of(["javac", "-d", str(CLASSES), "-cp", f"{JARS}/*", str(SOURCE)], f"javac {SOURCE.name}")


def jvm(setting: Setting, work: str, *numbers: int) -> Sample:
    """The figures that the Java program prints for one kind of work."""
    seconds = (WARM_UP * setting.seconds, setting.seconds)
    with one_core():
        output = output_of([*JAVA, work, *map(str, (*seconds, *numbers))], f"Kafka, {work}")
    return {name: float(figure) for name, figure in map(str.split, output.splitlines())}


@dataclass(frozen=True)
class Design:
    """This library, with one kind of operations or timers, on one loop."""

    name: str
    loop: str
    kind: type[Any]


def designs(kinds: Sequence[type[Any]], loops: Sequence[str] = LOOPS) -> Sequence[Design]:
    """The first kind is a class of the user's own, the second one is ready-made."""
    named = zip(("your class", "ready-made"), kinds, strict=False)
    return [Design(f"purgatory, {name}, {loop}", loop, kind) for (name, kind), loop in product(named, loops)]


WAITS = (PurgatoryCallback, ReadyMade)


def beside(
    setting: Setting,
    section: str,
    kafka: Callable[[], Sample],
    compared: Sequence[Design],
    measure: Callable[[Design], Sample],
) -> Parts:
    """The cases of a section."""

    def on_one_core(design: Design) -> Sample:
        with one_core():
            return measure(design)

    yield Case(section, KAFKA, kafka)
    yield from setting.cases(section, compared, on_one_core, interpreted=False)


@benchmark("kafka-parking", "cost to park and complete a wait", (100_000, 10_000), waits.FULL, LIMIT)
def parking(setting: Setting) -> Parts:
    yield Table(
        "n waits are parked, and all complete: microseconds each",
        setting.growth("us"),
        f"{NOTE} {WAITS_PER_KEY} waits per key. What Kafka leaves on the other keys it purges meanwhile.",
    )
    for keys, section in ((1, "parked on one key"), (3, "parked on three keys, one of which is checked")):
        yield from beside(
            setting,
            f"{section}, µs",
            partial(at_sizes, setting.sizes, partial(jvm, setting, "parking", keys), ["us"]),
            designs(WAITS),
            partial(_parked, setting, keys),
        )


def _parked(setting: Setting, keys: int, design: Design) -> Sample:
    def each(size: int) -> Sample:
        return {"us": run(design.loop, waits.measure, keys, ADVISED, design.kind, size)["total_us"]}

    return at_sizes(setting.sizes, each, ["us"], at_least=setting.times)


@benchmark("kafka-steady-state", "round trips with as many completed as parked", (1_000,), time_limit=LIMIT)
def steady_state(setting: Setting) -> Parts:
    pending = setting.sizes[0]
    yield Table(
        f"A wait on three keys is parked, the oldest of {pending:,} completed: microseconds",
        spreads(us="µs") + medians(per_second="per second", held="entries held"),
        f"{NOTE} Entries are those of the watch lists: three for each wait that is alive.",
    )
    for checked, which in ((1, "one of its three keys is checked"), (3, "all of its three keys are checked")):
        yield from beside(
            setting,
            f"round trip, {which}",
            partial(jvm, setting, "turnover", checked, pending),
            designs(WAITS),
            partial(_turned_over, setting, checked),
        )


def _turned_over(setting: Setting, checked: int, design: Design) -> Sample:
    return run(design.loop, waits.turn_over, checked, 2 * setting.times, design.kind, setting.sizes[0])


@benchmark(
    "kafka-expiry", "timeouts spread over one second", (100_000,), (100_000, 1_000_000), time_limit=LIMIT
)
def expiry(setting: Setting) -> Parts:
    yield Table(
        "Timeouts spread evenly over one second: milliseconds late",
        spreads(late_p99_ms="p99, ms late")
        + medians(late_p50_ms="p50", late_max_ms="max", expired_per_s="expired/s"),
        "Against each wait's own deadline, which for Kafka is in whole milliseconds from the call.",
    )
    yield Table(
        "The same: how many expire before their deadline",
        spreads(early="expired early"),
        "Kafka cuts deadlines to milliseconds.",
    )
    for size in setting.sizes:
        yield from beside(
            setting,
            f"{size:,} expire within a second",
            partial(jvm, setting, "expiry", size),
            designs((PurgatoryCallback, ReadyMadeSession)),
            partial(_late, setting, size),
        )


def _late(setting: Setting, size: int, design: Design) -> Sample:
    return lateness(replace(setting, loop=design.loop), size, ADVISED, design.kind)


@benchmark("kafka-timers", "timeouts added and cancelled", (100_000,), time_limit=LIMIT)
def timers(setting: Setting) -> Parts:
    pending = setting.sizes[0]
    yield Table(
        f"A timeout is added and cancelled while {pending:,} others are pending: microseconds",
        spreads(us="µs"),
        f"{NOTE} Kafka's SystemTimer, and this library's Timer.",
    )
    yield from beside(
        setting,
        "a timeout added and cancelled",
        partial(jvm, setting, "timers", pending),
        designs((CoreTimer,)),
        lambda design: run(design.loop, add_and_cancel, setting.times, design.kind, pending),
    )


# One repetition: the figures do not vary.
@benchmark("kafka-memory", "bytes per pending wait", (100_000,), time_limit=0.0)
def memory(setting: Setting) -> Parts:
    size = setting.sizes[0]
    yield Table(
        f"Bytes for each of {size:,} pending waits, the user's own object included",
        spreads(bytes="bytes"),
        "What the JVM's heap grows by, after a collection; what Python's allocators count.",
    )
    for keys, section in ((1, "pending on one key"), (3, "pending on three keys")):
        yield from beside(
            setting,
            section,
            partial(jvm, setting, "memory", keys, size),
            designs(WAITS, ("asyncio",)),
            partial(_bytes, size, keys),
        )


def _bytes(size: int, keys: int, design: Design) -> Sample:
    return {"bytes": waits.measure_memory(design.loop, size, keys, design.kind)["allocated"]}


@benchmark("kafka-stale", "a check of what has completed", (10_000,), time_limit=LIMIT)
def stale(setting: Setting) -> Parts:
    size = setting.sizes[0]
    yield Table(
        f"A key is checked whose {size:,} waits have all completed on another key",
        spreads(us="µs", visited="waits visited"),
        "Time of the check, and how many it visits that are complete already.",
    )
    yield from beside(
        setting,
        f"a check of {size:,} that are complete already",
        partial(jvm, setting, "stale", size),
        designs(WAITS, ("asyncio",)),
        lambda design: run(design.loop, _stale, design.kind, size),
    )


async def _stale(alternative_type: type[RoundTrips], size: int) -> Sample:
    tally, keys = Tally(), range(size)
    async with alternative_type(tally) as alternative:
        alternative.park(keys, [(key, SHARED) for key in keys], repeat(TIMEOUT))
        tally.ready = True
        alternative.signal(keys)
        tally.expect(alternative, completed=size)
        visited = alternative.held
        start = time.perf_counter()
        alternative.signal((SHARED,))
        return {"us": (time.perf_counter() - start) * 1e6, "visited": visited}
