"""Measures the designs side by side at ever higher rates, and prints the outcome."""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from benchmarks.harness import tables
from benchmarks.harness.benchmark import Build
from benchmarks.harness.load_test import ACHIEVED, Curve, LoadTest, Measurement, Point, Sweep
from benchmarks.harness.processes import environment, output_of
from benchmarks.harness.setting import Setting
from benchmarks.suites.load.kafka_jvm import KafkaMissing, kafka_jvm
from benchmarks.suites.load.plan import DISTRIBUTIONS, Distribution, Load, Plan
from benchmarks.suites.load.trial import GENERATOR

QUICK_RATES = (25_000, 100_000, 200_000, 400_000)
RATES = (25_000, 50_000, 100_000, 150_000, 200_000, 300_000, 400_000)
# Seconds that a process may take on top of ten times those of its run.
PATIENCE = 120.0
JVM = "JVM"

COSTS_NOTE = (
    f"Keeps up: achieves {ACHIEVED:.0%} of the target at least, and is at most 100 ms behind at the end. A "
    "design is not measured any further after two rates in a row that saturate it. "
    "Us/request: processor time, and its ratio to the first row's, without the time of the generator alone; "
    "but with it for Kafka itself, where generator and just-in-time compiler are threads of one process. "
    "Late: after the timeout. Held: entries on the watch lists when the last request had ended. MB: the "
    "growth of the process."
)

MeasureDesign = Callable[[Load, Path], Measurement]


@dataclass(frozen=True)
class Trial:
    """Measures a design that runs on an event loop, in a new Python process."""

    design: str
    loop: str
    # The build of purgatory's core that the process imports, even where it has no use for it.
    core: Build

    def __call__(self, load: Load, directory: Path) -> Measurement:
        """Put the design under load once. Raises RuntimeError when that fails."""
        plan = Plan.file(load, directory)
        command = [sys.executable, "-m", "benchmarks.suites.load.trial", self.design, self.loop, str(plan)]
        limit = PATIENCE + 10 * load.seconds
        output = output_of(command, f"{self.design} at {load}", limit, env=environment(self.core))
        return Measurement(**json.loads(output))


def run(setting: Setting, repetitions: int, console: Console) -> Iterator[LoadTest]:
    """Measure one distribution after the other. Gives the test, as far as it has come, after each."""
    designs = python_designs(setting)
    missing = None
    try:
        kafka = kafka_jvm()
    except KafkaMissing as reason:
        missing = str(reason)
        console.print(f"Kafka's own test is left out: {reason}.\n", width=tables.WIDTH)
    else:
        designs["Kafka 0.9.0.1 itself", JVM] = lambda load, _: kafka.measure(load)
        cores = "pinned to one core" if kafka.pinned else "on all cores, because there is no taskset"
        line = f"Kafka's own test runs on a JVM {cores}; all else in one event loop each.\n"
        console.print(line, width=tables.WIDTH)
    generator = Trial(GENERATOR, setting.loop, "interpreted")
    sweeps: list[Sweep] = []
    for distribution in DISTRIBUTIONS:
        rates = setting.sizes or (RATES if setting.full else QUICK_RATES)
        sweeps.append(sweep(distribution, designs, generator, rates, setting.seconds, repetitions, console))
        show(sweeps[-1], console)
        yield LoadTest(setting.seconds, sweeps, missing)


def python_designs(setting: Setting) -> dict[tuple[str, str], MeasureDesign]:
    """This library in each build at hand, then the designs of Kafka, by name and build."""
    loop, builds = setting.loop, setting.builds
    return {
        **{("purgatory", build): Trial("purgatory", loop, build) for build in builds},
        ("Kafka's present design", "interpreted"): Trial("kafka-now", loop, builds[0]),
        ("Kafka 0.8's design", "interpreted"): Trial("kafka-0.8", loop, builds[0]),
    }


def sweep(
    distribution: Distribution,
    designs: dict[tuple[str, str], MeasureDesign],
    generator: MeasureDesign,
    rates: Sequence[int],
    seconds: float,
    repetitions: int,
    console: Console,
) -> Sweep:
    """Measure all designs at each rate in turns, so that a slow spell of the machine falls on all of them.

    The generator alone is measured at each rate, too, but once: it varies little.
    """
    curves = {Curve(*names): measure for names, measure in designs.items()}
    alone = Curve("the generator alone", "interpreted")
    with tempfile.TemporaryDirectory() as directory:
        for rate in rates:
            running = [curve for curve in curves if not curve.finished]
            if not running:
                break
            for curve in (*running, alone):
                curve.points.append(Point(rate))
            for repetition in range(repetitions):
                first = repetition % len(running)
                for curve in (*running[first:], *running[:first], *([] if repetition else [alone])):
                    measured = curves.get(curve, generator)(
                        Load(distribution, rate, seconds), Path(directory)
                    )
                    curve.points[-1].add(measured)
                    name = f"{distribution.name}, {rate:,}/s: {curve.design}, {curve.build}"
                    console.print(f"{name}: {measured.achieved:,.0f}/s", soft_wrap=True)
    name, spread = distribution.name, (distribution.p50_ms, distribution.p75_ms, distribution.timeout_ms)
    return Sweep(name, *spread, distribution.keys, list(curves), alone)


def show(swept: Sweep, console: Console) -> None:
    """Print the highest rate of each design, and the cost at a rate that all designs keep up with."""
    rate = common_rate(swept)
    grid = tables.new_grid(f"{swept.name}: at {rate:,.0f} requests a second")
    for heading in ("keeps up to", "us/request", "ratio", "late p99 ms", "p50", "held", "MB"):
        grid.add_column(heading, justify="right", no_wrap=True)
    for curve in swept.curves:
        grid.add_row(swept.label(curve), *_costs(swept, curve, rate))
    tables.print_grid(console, grid, COSTS_NOTE)


def common_rate(swept: Sweep) -> float:
    """The highest rate that all designs keep up with; the lowest of all rates where there is none."""
    lowest = swept.generator.points[0].target
    return min(curve.kept_up_to or lowest for curve in swept.curves)


def _costs(swept: Sweep, curve: Curve, rate: float) -> Iterator[str]:
    yield f"{curve.kept_up_to:,.0f}/s" if curve.kept_up_to else "-"
    costs, reference = cost(swept, curve, rate), cost(swept, swept.curves[0], rate)
    yield tables.spread(costs) if costs else "-"
    if curve is swept.curves[0]:
        yield "1"
    elif costs and reference and statistics.median(reference) > 0:
        yield tables.figure(statistics.median(costs) / statistics.median(reference))
    else:
        yield "-"
    point = curve.at(rate) or Point(rate)
    late = point.figures["late_p99_ms"]
    yield tables.spread(late) if late else "-"
    for metric, digits in (("late_p50_ms", 1), ("held", 0), ("rss_mb", 0)):
        figures = point.figures[metric]
        # The zero turns a negative zero, of what is just early, into the usual one.
        yield f"{round(statistics.median(figures), 1) + 0.0:,.{digits}f}" if figures else "-"


def cost(swept: Sweep, curve: Curve, rate: float) -> list[float]:
    """Microseconds per request in each repetition; empty where that was not measured."""
    point, generator = curve.at(rate), swept.generator.at(rate)
    if point is None or generator is None:
        return []
    apart = 0.0 if curve.build == JVM else statistics.median(_spent(generator))
    return [spent - apart for spent in _spent(point)]


def _spent(point: Point) -> list[float]:
    spent = zip(point.figures["cpu_seconds"], point.figures["sent"], strict=False)
    return [seconds / sent * 1e6 for seconds, sent in spent]
