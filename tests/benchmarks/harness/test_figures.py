"""Medians, ratios, spreads and growth are computed right, from samples that are taken in turns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from rich.console import Console

from benchmarks import command
from benchmarks.command import interleave
from benchmarks.harness import tables
from benchmarks.harness.benchmark import (
    Case,
    Column,
    Result,
    Row,
    Sample,
    Setting,
    Table,
    at_sizes,
    benchmark,
    percentiles,
)


def never() -> Sample:
    raise NotImplementedError


def result(figures: Mapping[tuple[str, str], Sequence[Sample]], *columns: Column) -> Result:
    """A result of cases (section, name), with one table."""
    rows = [Row(*names, None, list(measured)) for names, measured in figures.items()]
    table = Table(
        "Microseconds", columns or (Column("us", "n = 10"), Column("held", "entries", spread=False)), "n."
    )
    return Result("suite", "cost", "the cost", [table], rows)


PURGATORY, OTHER, SILENT = ("callbacks", "purgatory"), ("callbacks", "other"), ("callbacks", "silent")
MEASURED = result(
    {
        PURGATORY: [{"us": 1.0, "held": 7.0}, {"us": 2.0, "held": 8.0}, {"us": 4.0, "held": 9.0}],
        OTHER: [{"us": 3.0}, {"us": 2.0}, {"us": 2.0}],
        SILENT: [{"else": 1.0}],
    }
)


def test_a_row_has_the_median_ratio_the_median_with_its_spread_and_the_repetitions() -> None:
    console = Console(width=tables.WIDTH, highlight=False)
    with console.capture() as capture:
        tables.show(MEASURED, console)
    shown = {line.split()[0]: line.split()[1:] for line in capture.get().splitlines() if line.split()}
    assert shown["purgatory"] == ["1", "2.00", "(1.00-4.00)", "8.00", "3"]
    assert shown["other"] == ["1.00", "2.00", "(2.00-3.00)", "-", "3"]
    # The case has no figure for this table.
    assert "silent" not in shown


def test_ratios_are_within_a_repetition_and_none_is_to_zero() -> None:
    _, other, silent = MEASURED.cases
    assert MEASURED.ratios(other, "us") == [3.0, 1.0, 0.5]
    assert MEASURED.ratios(silent, "us") == []
    zero = result({PURGATORY: [{"us": 0.0}, {"us": 2.0}], OTHER: [{"us": 3.0}, {"us": 3.0}]})
    assert zero.ratios(zero.cases[1], "us") == [1.5]


def test_a_spread_is_median_minimum_and_maximum_and_percentiles_are_measured_figures() -> None:
    assert tables.spread([3.0, 1.0, 2.0, 10.0]) == "2.50 (1.00-10.0)"
    assert (tables.spread([3.0]), tables.spread([])) == ("3.00", "-")
    ascending = [float(n) for n in range(1, 101)]
    assert percentiles(reversed(ascending)) == {"p50_ms": 50, "p99_ms": 99}
    assert percentiles([3.0], "late_") == {"late_p50_ms": 3, "late_p99_ms": 3}


def test_figures_have_three_digits_or_all_before_the_point() -> None:
    figures = (0.126, 9.996, 12.34, 123.4, 1234567.0)
    assert list(map(tables.figure, figures)) == ["0.13", "10.00", "12.3", "123", "1,234,567"]


def test_growth_is_from_the_smallest_to_the_largest_size_and_small_sizes_count_with_their_mean() -> None:
    measured: list[int] = []

    def measure(size: int) -> Sample:
        measured.append(size)
        return {"us": size / 10 + (len(measured) - 1) * (size == 20)}

    sample = at_sizes((40, 20, 80), measure, growing=("us",), at_least=60)
    assert measured == [20, 20, 20, 40, 80]
    assert sample == {"us_20": 3.0, "us_40": 4.0, "us_80": 8.0, "us_growth": pytest.approx(8 / 3)}
    assert at_sizes((40, 80), measure, growing=("us",), at_most=40) == {"us_40": 4.0}


def test_the_first_size_is_the_first_column_and_the_others_ascend() -> None:
    columns = Setting(sizes=(1_000, 100_000, 10)).growth("us")
    assert [column.metric for column in columns] == ["us_1000", "us_10", "us_100000", "us_growth"]
    assert [column.spread for column in columns] == [True, False, False, False]
    assert len(Setting(sizes=(1_000,)).growth("us")) == 1


def test_each_round_measures_all_cases_and_starts_with_another_within_the_time_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Clock:
        now = 0.0

        def perf_counter(self) -> float:
            return self.now

    clock = Clock()
    monkeypatch.setattr(command, "time", clock)
    seconds = {"one": 4.0, "other": 7.0, "third": 100.0}
    cases = tuple(Case("section", name, never) for name in seconds)
    measured: list[str] = []

    def measure(setting: Setting, suite: str, name: str, case: Case) -> Sample:
        measured.append(case.name)
        clock.now += seconds[case.name]
        return {"us": clock.now}

    monkeypatch.setattr(command, "in_fresh_process", measure)
    console = Console(quiet=True)
    unlimited = benchmark("cost", "", [10], time_limit=1000.0)(lambda _: iter(cases))
    interleave("suite", unlimited, Setting(), 4, console)
    first, second = ["one", "other", "third"], ["other", "third", "one"]
    assert measured == [*first, *second, *("third", "one", "other"), *first]
    measured.clear()
    limited = benchmark("cost", "", [10], time_limit=20.0)(lambda _: iter(cases))
    rows = interleave("suite", limited, Setting(), 5, console).cases
    assert [len(row.samples) for row in rows] == [5, 2, 1]


def test_purgatory_is_measured_in_each_build_where_the_build_matters() -> None:
    both = list(Setting().case("tasks", "purgatory", never))
    assert both == [
        Case("tasks", "purgatory", never, "compiled"),
        Case("tasks", "purgatory, interpreted", never, "interpreted"),
    ]
    assert list(Setting().case("tasks", "purgatory", never, interpreted=False)) == both[:1]
    assert list(Setting(builds=("interpreted",)).case("tasks", "purgatory", never)) == both[1:]
    assert list(Setting().case("tasks", "a list", never)) == [Case("tasks", "a list", never)]
