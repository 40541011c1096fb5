"""What comes out of a run: tables, and whether the bars are met."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from benchmarks.pipeline.case import THREADS, Case
from benchmarks.pipeline.steps import DUCKDB, STEPS, SUMMARIZE
from benchmarks.question import Answer, Column, Contender, Question, Sample, Table

# Ten times the operations may cost so many times as much, and half of them on one key so many times as much
# as none.
GROWTH_BAR: Final = 10.5
SKEW_BAR: Final = 1.5
# Memory may not grow; two runs of the same differ by this.
MEMORY_BAR: Final = 1.15
# Where Spark takes less than so many times what DuckDB takes, its overhead no longer matters.
OVERHEAD_BAR: Final = 2.0

TOGETHER: Final = "together"

Samples = Mapping[tuple[Case, str], Sample]

_COLUMNS: Final = (
    Column("seconds", "seconds"),
    Column("processor_seconds", "CPU s"),
    Column("rss_mib", "peak MiB"),
)
_HEAP: Final = Column("heap_mib", "heap MiB")


@dataclass(frozen=True, slots=True)
class Verdict:
    """By how much something grows, in each step and together, against how much it may."""

    claim: str
    ratios: Mapping[str, float]
    bar: float

    @property
    def met(self) -> bool:
        """By all steps."""
        return max(self.ratios.values()) <= self.bar


def answers(samples: Samples, memory: str) -> Iterator[Answer]:
    """What was measured with so much memory, set in relation."""
    cases = list(dict.fromkeys(case for case, _ in samples))
    yield _answer(
        "pipeline-growth",
        "What the pipeline takes as journals grow",
        {(step, str(case)): samples[case, step] for step in STEPS for case in cases},
        (*_COLUMNS, _HEAP),
        f"local[{THREADS}], a heap of {memory}; each step in a process of its own, whose start is counted. "
        "Peak: of all processes together, Python's included. Heap: after the collection that left the most. "
        "The ratio is that of the seconds to the first row's.",
    )
    yield _answer(
        "pipeline-yardstick",
        "The same summaries by DuckDB",
        {
            (f"{case} operations", name): samples[case, step]
            for case in cases
            for name, step in (("DuckDB", DUCKDB), ("Spark", SUMMARIZE))
        },
        _COLUMNS,
        f"Of the same dataset, each with {THREADS} threads and {memory}. Both have found the same: counts "
        "are equal, and quantiles within the pipeline's bins of 0.1 %.",
    )


def verdicts(samples: Samples, small: Case, large: Case) -> Iterator[Verdict]:
    """What has become of the bars, between two cases, and between each hot one and its like."""
    growth = large.operations / small.operations
    more, bar = f"{growth:g} times the operations", GROWTH_BAR * growth / 10
    yield Verdict(f"{more}: seconds", _sums(samples, small, large, "seconds"), bar)
    yield Verdict(f"{more}: CPU seconds", _sums(samples, small, large, "processor_seconds"), bar)
    yield Verdict(f"{more}: heap", _peaks(samples, small, large, "heap_mib"), MEMORY_BAR)
    yield Verdict(f"{more}: all memory", _peaks(samples, small, large, "rss_mib"), MEMORY_BAR)
    for hot in dict.fromkeys(case for case, _ in samples if case.hot):
        like = Case(hot.operations)
        yield Verdict(f"{hot}: seconds", _sums(samples, like, hot, "seconds"), SKEW_BAR)
        yield Verdict(f"{hot}: CPU seconds", _sums(samples, like, hot, "processor_seconds"), SKEW_BAR)


def overhead(samples: Samples) -> str:
    """From how many operations on Spark's overhead no longer matters, in a sentence."""
    ratios = {
        case: samples[case, SUMMARIZE]["seconds"] / samples[case, DUCKDB]["seconds"]
        for case in dict.fromkeys(case for case, _ in samples)
        if not case.hot
    }
    for case, ratio in ratios.items():
        if ratio < OVERHEAD_BAR:
            return (
                f"From {case} operations on Spark takes less than {OVERHEAD_BAR:g} times as long as DuckDB."
            )
    case, ratio = list(ratios.items())[-1]
    return (
        f"Spark's overhead has not stopped mattering: with {case} operations it takes {ratio:.1f} times as "
        "long as DuckDB."
    )


def _sums(samples: Samples, one: Case, other: Case, metric: str) -> Mapping[str, float]:
    total = sum(samples[other, step][metric] for step in STEPS) / sum(
        samples[one, step][metric] for step in STEPS
    )
    return _steps(samples, one, other, metric) | {TOGETHER: total}


def _peaks(samples: Samples, one: Case, other: Case, metric: str) -> Mapping[str, float]:
    peak = max(samples[other, step][metric] for step in STEPS) / max(
        samples[one, step][metric] for step in STEPS
    )
    return _steps(samples, one, other, metric) | {TOGETHER: peak}


def _steps(samples: Samples, one: Case, other: Case, metric: str) -> dict[str, float]:
    return {step: samples[other, step][metric] / samples[one, step][metric] for step in STEPS}


def _answer(
    name: str,
    title: str,
    rows: Mapping[tuple[str, str], Sample],
    columns: tuple[Column, ...],
    note: str,
) -> Answer:
    """Of what has been measured already."""
    contenders = {
        Contender(section, row, partial(dict, sample)): [sample] for (section, row), sample in rows.items()
    }
    question = Question(name, title, tuple(contenders), (Table(title, columns, note),), patience=0.0)
    return Answer(question, contenders)
