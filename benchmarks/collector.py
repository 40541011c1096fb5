"""What the garbage collector adds to parking, with its default thresholds and with raised ones.

    python -m benchmarks.collector

Operations are freed by reference count; the collector only looks through those that wait, again and again
as more are parked. The README's advice on thresholds comes from these figures.
"""

from __future__ import annotations

import gc
import statistics
import time

from rich.console import Console
from rich.table import Table

from benchmarks.loops import run
from purgatory import COMPILED, DelayedOperation, Purgatory

REPETITIONS = 5
SETTINGS: dict[str, tuple[int, int, int] | None] = {
    "off": None,
    "default thresholds": (700, 10, 10),
    "gc.set_threshold(50_000, 20, 50)": (50_000, 20, 50),
}


class Wait(DelayedOperation[None]):
    """What nothing completes."""

    __slots__ = ()

    def try_complete(self) -> bool:
        return False


def microseconds_to_park(number: int, thresholds: tuple[int, int, int] | None) -> float:
    """Processor time of parking one of `number` operations, ten to a key, with a timeout of 30 s."""

    async def park() -> float:
        async with Purgatory() as purgatory:
            begun = time.process_time()
            for count in range(number):
                purgatory.try_complete_else_watch(Wait(30.0), (count // 10,))
            spent = time.process_time() - begun
            await purgatory.aclose(cancel_pending=True)
        return spent / number * 1e6

    gc.collect()
    usual = gc.get_threshold()
    gc.set_threshold(*(thresholds or (0, 0, 0)))
    try:
        return run("asyncio", park())
    finally:
        gc.set_threshold(*usual)


def main() -> None:
    """Measure the settings in turns, and print the medians."""
    console = Console()
    table = Table(title=f"Microseconds to park an operation, {'compiled' if COMPILED else 'interpreted'}")
    table.add_column("garbage collector")
    numbers = (100_000, 1_000_000)
    for number in numbers:
        table.add_column(f"{number:,} pending", justify="right")
    samples: dict[tuple[str, int], list[float]] = {}
    for _ in range(REPETITIONS):
        for number in numbers:
            for name, thresholds in SETTINGS.items():
                samples.setdefault((name, number), []).append(microseconds_to_park(number, thresholds))
    for name in SETTINGS:
        table.add_row(name, *(f"{statistics.median(samples[name, number]):.2f}" for number in numbers))
    console.print(table)


if __name__ == "__main__":
    main()
