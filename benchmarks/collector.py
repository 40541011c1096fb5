"""What the garbage collector adds to parking, with its default thresholds and as the README advises.

    python -m benchmarks.collector

Operations are freed by reference count; the collector only looks through those that wait, again and again
as more are parked. The README's advice on thresholds comes from these figures.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from benchmarks.arguments import command_line
from benchmarks.collector_setting import CollectorSetting
from benchmarks.loops import run
from purgatory import COMPILED, DelayedOperation, Purgatory

REPETITIONS = 5


class Wait(DelayedOperation[None]):
    """What nothing completes."""

    __slots__ = ()

    def try_complete(self) -> bool:
        return False


def microseconds_to_park(number: int, collector: CollectorSetting) -> float:
    """Processor time of parking one of `number` operations, ten to a key, with a timeout of 30 s."""

    async def park() -> float:
        async with Purgatory() as purgatory:
            begun = time.process_time()
            for count in range(number):
                purgatory.try_complete_else_watch(Wait(30.0), (count // 10,))
            spent = time.process_time() - begun
            await purgatory.aclose(cancel_pending=True)
        return spent / number * 1e6

    with collector.applied():
        return run("asyncio", park())


def main(arguments: Sequence[str] = ()) -> None:
    """Measure the settings in turns, and print the medians."""
    command_line("python -m benchmarks.collector", __doc__ or "", "").parse_args(arguments)
    console = Console()
    table = Table(title=f"Microseconds to park an operation, {'compiled' if COMPILED else 'interpreted'}")
    table.add_column("")
    numbers = (100_000, 1_000_000)
    for number in numbers:
        table.add_column(f"{number:,} pending", justify="right")
    samples: dict[tuple[CollectorSetting, int], list[float]] = {}
    for _ in range(REPETITIONS):
        for number in numbers:
            for collector in CollectorSetting:
                samples.setdefault((collector, number), []).append(microseconds_to_park(number, collector))
    for collector in CollectorSetting:
        medians = (statistics.median(samples[collector, number]) for number in numbers)
        table.add_row(collector.value, *(f"{median:.2f}" for median in medians))
    console.print(table)


if __name__ == "__main__":
    main(sys.argv[1:])
