"""A metric that is measured for several sizes, one beside the other: how it grows shows in a row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from benchmarks.question import Column, Sample


def at(metric: str, size: int) -> str:
    """The metric's name at one size."""
    return f"{metric}_{size}"


def columns(metric: str, sizes: Sequence[int]) -> tuple[Column, ...]:
    """A column for each size, the first of which the ratio is of; and one for the growth over all of them."""
    headline, *others = sizes
    return (
        Column(at(metric, headline), f"n = {headline:,}"),
        *(Column(at(metric, size), f"n = {size:,}", spread=False) for size in sorted(others)),
        *([Column(f"{metric}_growth", "growth", spread=False)] if others else []),
    )


def measured(
    sizes: Sequence[int],
    measure: Callable[[int], Sample],
    *,
    growing: Iterable[str],
    at_least: int = 0,
    at_most: int | None = None,
) -> Sample:
    """One measurement for each size up to `at_most`, the smallest first; the growth, if that is all of them.

    A small size is measured several times, until `at_least` have been through it in all, and counts with
    its mean: it would be over too soon to be told from whatever else the machine did.
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
