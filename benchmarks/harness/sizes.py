"""Measures the same metrics at several sizes, so that their growth shows in one row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from benchmarks.harness.benchmark import Column, Sample


def at(metric: str, size: int) -> str:
    """The metric's name at one size."""
    return f"{metric}_{size}"


def size_columns(metric: str, sizes: Sequence[int]) -> tuple[Column, ...]:
    """A column for each size, and one for the growth. Ratios are those of the first size."""
    headline, *others = sizes
    return (
        Column(at(metric, headline), f"n = {headline:,}"),
        *(Column(at(metric, size), f"n = {size:,}", spread=False) for size in sorted(others)),
        *([Column(f"{metric}_growth", "growth", spread=False)] if others else []),
    )


def measure_sizes(
    sizes: Sequence[int],
    measure: Callable[[int], Sample],
    *,
    growing: Iterable[str],
    at_least: int = 0,
    at_most: int | None = None,
) -> Sample:
    """Measure each size up to `at_most`, the smallest first; `growing` metrics also get their growth.

    A small size is measured again until `at_least` operations have been measured, and counts with its mean:
    one round would be too short to stand out from what else the machine does.
    """
    sample: dict[str, float] = {}
    smallest, largest = min(sizes), max(sizes)
    within = sorted(size for size in sizes if at_most is None or size <= at_most)
    for size in within:
        rounds = [measure(size) for _ in range(max(1, at_least // size))]
        for metric in rounds[0]:
            sample[at(metric, size)] = sum(figures[metric] for figures in rounds) / len(rounds)
    if smallest < largest and largest in within:
        for metric in growing:
            sample[f"{metric}_growth"] = sample[at(metric, largest)] / sample[at(metric, smallest)]
    return sample
