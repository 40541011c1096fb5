"""The load test of Kafka's timing wheels, for asyncio: requests at ever higher rates.

The design note "Apache Kafka, Purgatory, and Hierarchical Timing Wheels" (Confluent, 2015) compares the
request purgatory of Kafka 0.8 with the one on timing wheels by Kafka's own `kafka.TestPurgatoryPerformance`.
Requests arrive as a Poisson process, whether or not earlier ones have ended. The time to complete one is
log-normal, given by its median and third quartile; requests that take longer than the timeout expire. The
rate is raised until the purgatory falls behind.

This suite does what that test does by its source (core/src/test/scala/other/kafka in apache/kafka):

- All requests watch the same keys, so a watch list holds everything that is pending.
- Completing a request completes that operation itself (`forceComplete`). No key is checked.
- Only requests that complete before their timeout are handed to the source of completions.

It differs in this: arrivals and completions are drawn before the run, the same for all designs (`plan`); one
event loop does the work of three threads; and a run that has fallen behind is cut short (`trial`). Measured
are this library, Kafka's designs in Python and Kafka itself (`kafka_jvm`), each run in a new process.
"""

from __future__ import annotations

import json
import pickle
import statistics
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

from rich.console import Console

from benchmarks.harness import tables
from benchmarks.harness.benchmark import Build, Result, Row, Sample, Setting, Table
from benchmarks.harness.load_test import ACHIEVED, COLUMNS, GENERATOR, curves, finished, kept_up_to
from benchmarks.harness.load_test import rate as rate_of
from benchmarks.harness.processes import environment, output_of
from benchmarks.suites.load import kafka_jvm
from benchmarks.suites.load.plan import DISTRIBUTIONS, Plan

QUICK_RATES = (25_000, 100_000, 200_000, 400_000)
RATES = (25_000, 50_000, 100_000, 150_000, 200_000, 300_000, 400_000)
KAFKA = "Kafka 0.9.0.1 itself"

COSTS_NOTE = (
    f"Keeps up: achieves {ACHIEVED:.0%} of the target at least, and is at most 100 ms behind at the end. A "
    "design is not measured any further after two rates in a row that saturate it. "
    "Us/request: processor time, and its ratio to the first row's, without the time of the generator alone; "
    "but with it for Kafka itself, where generator and just-in-time compiler are threads of one process. "
    "Late: after the timeout. Held: entries on the watch lists when the last request had ended. MB: the "
    "growth of the process."
)

# Measures a design once, by a plan, which is in a file as well.
Measure = Callable[[Plan, Path], Sample]


def run(
    setting: Setting, repetitions: int, console: Console, designs: Mapping[str, Measure] | None = None
) -> Iterator[Result]:
    """Measure one distribution after the other.

    The designs take turns, so that a slow spell of the machine falls on all of them; each turn begins with
    another one. The generator alone is measured once at each rate: it varies little.
    """
    designs = designs or all_designs(setting, console)
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory, "plan")
        for distribution in DISTRIBUTIONS:
            rows: dict[str, list[Row]] = {name: [] for name in designs}
            for rate in setting.sizes or (RATES if setting.full else QUICK_RATES):
                running = deque(name for name in designs if name != GENERATOR and not finished(rows[name]))
                if not running:
                    break
                plan = Plan.draw(distribution, rate, setting.seconds)
                # Drawing a plan takes about as long as following it.
                file.write_bytes(pickle.dumps(plan, protocol=5))
                samples: dict[str, list[Sample]] = {name: [] for name in (*running, GENERATOR)}
                for repetition in range(repetitions):
                    for name in (*running, *([] if repetition else [GENERATOR])):
                        sample = designs[name](plan, file)
                        samples[name].append(sample)
                        console.print(f"{plan}: {name}: {sample['achieved']:,.0f}/s", soft_wrap=True)
                    running.rotate(-1)
                for name, taken in samples.items():
                    rows[name].append(Row(name, f"{rate:,}", None, taken))
            cases = [row for curve in rows.values() for row in curve]
            name, summary = distribution.name, distribution.summary
            result = Result("load", name, summary, [Table(name, COLUMNS)], cases)
            show(result, console)
            yield result


def all_designs(setting: Setting, console: Console) -> Mapping[str, Measure]:
    """How to measure each design, and the generator. Says whether Kafka itself is among them."""
    loop, builds = setting.loop, setting.builds
    designs: dict[str, Measure] = {}
    for build in builds:
        name = f"purgatory, {build}" if len(builds) > 1 else "purgatory"
        designs[name] = partial(in_fresh_process, "purgatory", loop, build)
    for name in ("Kafka's present design", "Kafka 0.8's design"):
        designs[name] = partial(in_fresh_process, name, loop, builds[0])
    try:
        designs[KAFKA] = partial(kafka_jvm.measure, kafka_jvm.java_command())
        line = "Kafka's own test runs on a JVM pinned to one core; all else in one event loop each.\n"
    except (OSError, RuntimeError) as reason:
        line = f"Kafka's own test is left out: {reason}.\n"
    console.print(line, width=tables.WIDTH)
    return designs | {GENERATOR: partial(in_fresh_process, GENERATOR, loop, builds[0])}


def in_fresh_process(design: str, loop: str, build: Build, plan: Plan, file: Path) -> Sample:
    """Measure a design once in a new Python process, which imports this build."""
    command = [sys.executable, "-m", "benchmarks.suites.load.trial", design, loop, str(file)]
    sample: Sample = json.loads(output_of(command, f"{design} at {plan}", env=environment(build)))
    return sample


def show(result: Result, console: Console) -> None:
    """Print the highest rate of each design, and the cost at a rate that all designs keep up with."""
    *designs, _ = curves(result).items()
    rate = common_rate(result)
    grid = tables.new_grid(f"{result.name}: at {rate:,} requests a second")
    for heading in ("keeps up to", "us/request", "ratio", "late p99 ms", "p50", "held", "MB"):
        grid.add_column(heading, justify="right", no_wrap=True)
    reference = statistics.median(cost(result, designs[0][0], rate))
    for name, curve in designs:
        costs, most, row = cost(result, name, rate), kept_up_to(curve), at_rate(result, name, rate)
        others = (row.figures(metric) for metric in ("late_p50_ms", "held", "rss_mb"))
        grid.add_row(
            name,
            f"{most:,}/s" if most else "-",
            tables.spread(costs),
            tables.figure(statistics.median(costs) / reference) if reference > 0 else "-",
            tables.spread(row.figures("late_p99_ms")),
            *(tables.spread(each and [statistics.median(each)]) for each in others),
        )
    tables.print_grid(console, grid, COSTS_NOTE)


def common_rate(result: Result) -> int:
    """The highest rate that all designs keep up with; the lowest of all rates where there is none."""
    *designs, generator = curves(result).values()
    return min(kept_up_to(curve) or rate_of(generator[0]) for curve in designs)


def at_rate(result: Result, name: str, rate: int) -> Row:
    """A design's case."""
    return next(row for row in curves(result)[name] if rate_of(row) == rate)


def cost(result: Result, name: str, rate: int) -> list[float]:
    """Microseconds per request in each repetition."""
    spent, alone = (
        [sample["cpu_seconds"] / sample["sent"] * 1e6 for sample in at_rate(result, each, rate).samples]
        for each in (name, GENERATOR)
    )
    apart = 0.0 if name == KAFKA else statistics.median(alone)
    return [each - apart for each in spent]
