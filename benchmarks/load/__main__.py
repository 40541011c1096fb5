"""The command: ``python -m benchmarks.load``."""

from __future__ import annotations

import argparse
import os
import platform
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console

from benchmarks import tables
from benchmarks.arguments import add_json, add_loop, command_line, seconds_between, whole
from benchmarks.builds import builds_at_hand
from benchmarks.load import document, table
from benchmarks.load.contestant import Contestant, Plans, generator_alone, python_contestants
from benchmarks.load.distribution import DISTRIBUTIONS, Distribution, Load
from benchmarks.load.kafka_jvm import kafka_jvm
from benchmarks.load.kafka_package import KafkaMissing
from benchmarks.load.measurement import Measurement
from benchmarks.load.progress import progress
from benchmarks.load.sweep import Sweep

RATES = (25_000, 50_000, 100_000, 150_000, 200_000, 300_000, 400_000)
REPETITIONS = 5
SECONDS = 2.0
QUICK_RATES = (25_000, 100_000, 200_000, 400_000)
QUICK_REPETITIONS = 1
QUICK_SECONDS = 1.0

DESCRIPTION = """\
Requests that complete after some time or expire, at ever higher rates, until each design falls behind: this
library, Kafka's present purgatory and the one of Kafka 0.8 in Python; and, where npm and Java are installed,
Kafka's own test of its purgatory on a JVM (30 MB, fetched once into the user's cache).
"""
EXAMPLES = """\
examples:
  python -m benchmarks.load                               all of it, some 17 minutes
  python -m benchmarks.load --quick                       a first look, in two minutes
  python -m benchmarks.load --loop uvloop --json load.json
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print; exit with a message where a measurement fails."""
    options = _parser().parse_args(arguments)
    quick: bool = options.quick
    rates = QUICK_RATES if quick else RATES
    repetitions: int = options.repetitions or (QUICK_REPETITIONS if quick else REPETITIONS)
    seconds: float = options.seconds or (QUICK_SECONDS if quick else SECONDS)
    console = tables.console()
    builds = builds_at_hand()
    contestants = python_contestants(options.loop, builds)
    kafka_missing = None
    try:
        kafka = kafka_jvm()
    except KafkaMissing as reason:
        kafka_missing = str(reason)
        kafka_line = f"Kafka's own test is left out: {reason}."
    else:
        contestants.append(kafka)
        cores = "pinned to one core" if kafka.pinned else "on all cores, because there is no taskset"
        kafka_line = f"Kafka's own test runs on a JVM {cores}; all else in one event loop each."
    console.print(
        f"purgatory, {' and '.join(builds)}; {options.loop}; Python {platform.python_version()}; "
        f"{os.cpu_count()} cores; {seconds:g} s each\n"
        f"Figures are medians (minimum-maximum) of {repetitions} interleaved repetitions.\n{kafka_line}\n",
        width=tables.WIDTH,
    )
    sweeps: dict[Distribution, Sweep] = {}
    try:
        for distribution, sweep in _sweeps(
            contestants, generator_alone(options.loop), rates, repetitions, seconds, console
        ):
            sweeps[distribution] = sweep
            table.show(distribution, sweep, console)
            if options.json is not None:
                document.write(
                    options.json,
                    sweeps,
                    loop=options.loop,
                    repetitions=repetitions,
                    seconds=seconds,
                    kafka_missing=kafka_missing,
                )
    except RuntimeError as error:
        raise SystemExit(str(error)) from None


def _sweeps(
    contestants: Sequence[Contestant],
    generator: Contestant,
    rates: Sequence[int],
    repetitions: int,
    seconds: float,
    console: Console,
) -> Iterator[tuple[Distribution, Sweep]]:
    """Each distribution, when all of it has been measured."""
    with tempfile.TemporaryDirectory() as directory, progress(console, len(DISTRIBUTIONS)) as tell:
        plans = Plans(Path(directory))
        for number, distribution in enumerate(DISTRIBUTIONS):

            def measure(
                contestant: Contestant, rate: int, distribution: Distribution = distribution
            ) -> Measurement:
                return contestant.measure(Load(distribution, rate, seconds), plans)

            sweep = Sweep(contestants, generator, rates, repetitions, measure)
            for step in sweep.steps():
                tell(number, distribution, step)
            yield distribution, sweep


def _parser() -> argparse.ArgumentParser:
    parser = command_line("python -m benchmarks.load", DESCRIPTION, EXAMPLES)
    add_loop(parser)
    parser.add_argument("--quick", action="store_true", help="fewer rates, one repetition, shorter runs")
    parser.add_argument("--repetitions", type=whole(), metavar="N", help=f"N repetitions, not {REPETITIONS}")
    parser.add_argument(
        "--seconds",
        type=seconds_between(0.1, 60),
        metavar="S",
        help=f"requests arrive for S seconds, not {SECONDS:g}",
    )
    add_json(parser)
    return parser


if __name__ == "__main__":
    main()
