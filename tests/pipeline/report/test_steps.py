"""Summaries by steps of time."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from purgatory.observer import OUTCOMES
from purgatory.pipeline.report.downsampling import (
    MAX_STEPS,
    fan_out_in_steps,
    gaps_in_steps,
    minutes_in_steps,
    minutes_per_step,
    pending_in_steps,
)
from purgatory.pipeline.summarize.coverage import Coverage
from tests.pipeline.report.sample_findings import FETCH, MINUTE, NOON, minute

INSTANT, TEXT, COUNT, REAL = pa.timestamp("us", "UTC"), pa.string(), pa.int64(), pa.float64()
MINUTES = pa.schema(
    [
        ("minute", INSTANT),
        ("purgatory", TEXT),
        ("kind", TEXT),
        *((name, COUNT) for name in ("operations", *OUTCOMES)),
        *((f"wait_{each}_us", REAL) for each in ("p50", "p90", "p99", "p999")),
        ("lateness_p99_us", REAL),
        ("tries_per_operation", REAL),
    ]
)
PENDING = pa.schema(
    [
        *((name, INSTANT) for name in ("minute", "since", "until")),
        ("purgatory", TEXT),
        ("kind", TEXT),
        ("pending_max", COUNT),
        ("pending_mean", REAL),
        ("pending_last", COUNT),
    ]
)
FAN_OUT = pa.schema(
    [
        ("minute", INSTANT),
        ("purgatory", TEXT),
        *((name, COUNT) for name in ("checks", "tried", "completed")),
        *((name, REAL) for name in ("tried_p50", "tried_p99")),
        ("tried_max", pa.int32()),
    ]
)
NOON_US = round(NOON.timestamp()) * 1_000_000
ALL = Coverage(0, 2 * NOON_US)


def at(number: int) -> datetime:
    return NOON + number * MINUTE


def test_steps_are_the_shortest_round_ones() -> None:
    assert [minutes_per_step(MAX_STEPS * each) for each in (1, 2, 3, 100, 1_440)] == [1, 2, 5, 120, 1_440]
    assert minutes_per_step(MAX_STEPS * 1_440 * 5 + 1) == 6 * 1_440
    assert minutes_per_step(1) == 1


@pytest.mark.parametrize("seed", range(50))
def test_there_are_at_most_max_steps(seed: int) -> None:
    minutes = int(10 ** random.Random(seed).uniform(0, 9))

    assert -(-minutes // minutes_per_step(minutes)) <= MAX_STEPS


def table(schema: pa.Schema, *rows: tuple[Any, ...]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)


def by_minute(*rows: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist([row | {"minute": row["since"]} for row in rows], MINUTES)


def test_an_outcome_that_came_later_is_counted_as_0() -> None:
    (row,) = minutes_in_steps(by_minute(minute(0, failed=None)), 5, ALL).to_pylist()
    assert row["failed"] == 0


def test_counts_are_added_up_and_the_highest_quantile_is_kept() -> None:
    rows = by_minute(
        minute(0, wait_p50_us=3.0, lateness_p99_us=None),
        minute(4, wait_p50_us=2.0, tries_per_operation=3.5, operations=12, completed=10),
        minute(5),
    )

    first, second = minutes_in_steps(rows, 5, ALL).sort_by("since").to_pylist()

    assert first == FETCH | {
        "since": at(0),
        "until": at(5),
        "operations": 16,
        "completed": 12,
        "expired": 2,
        "cancelled": 2,
        "failed": 0,
        "wait_p50_us": 3.0,
        "wait_p90_us": 900.0,
        "wait_p99_us": 2_000.0,
        "wait_p999_us": 3_000.0,
        "lateness_p99_us": 150.0,
        "tries_per_operation": 3.0,
    }
    assert (second["since"], second["until"], second["operations"]) == (at(5), at(10), 4)


def test_checks_are_added_up_and_the_highest_quantile_is_kept() -> None:
    checks = table(FAN_OUT, (at(0), "fetch", 1, 2, 1, 2.0, 2.0, 2), (at(1), "fetch", 3, 4, 0, 1.0, 9.0, 9))

    (row,) = fan_out_in_steps(checks, 2, ALL).to_pylist()

    assert tuple(row.values())[2:] == ("fetch", 4, 6, 1, 2.0, 9.0, 9)


def test_a_step_counts_its_incomplete_minutes() -> None:
    gaps = table(pa.schema([("minute", INSTANT)]), *((at(each),) for each in (0, 4, 15)))
    rows = gaps_in_steps(gaps, 5).sort_by("since").to_pylist()

    assert [(row["since"], row["incomplete_minutes"]) for row in rows] == [(at(0), 2), (at(15), 1)]


@pytest.mark.parametrize("step", [1, 60])
def test_pending_operations_by_step_agree_with_those_by_minute(step: int) -> None:
    changing = random.Random(step)
    rows: list[tuple[Any, ...]] = []
    expected: dict[tuple[str, datetime], list[tuple[int, float]]] = {}
    for kind in ("Fetch", "Other"):
        last = 0
        numbers = sorted(changing.sample(range(300), 25))
        for number, following in zip(numbers, [*numbers[1:], numbers[-1] + 1], strict=True):
            most, mean, level = changing.randint(last, 9), changing.random() * 9, changing.randint(0, 5)
            rows.append((at(number), at(number), at(number + 1), "fetch", kind, most, mean, level))
            for each in range(number, following):
                of_minute = (most, mean) if each == number else (level, float(level))
                expected.setdefault((kind, at(each // step * step)), []).append(of_minute)
            last = level
    found = pending_in_steps(table(PENDING, *rows), step, ALL).to_pylist()

    assert {(row["kind"], row["since"]): row["pending_max"] for row in found} == {
        key: max(most for most, _ in minutes) for key, minutes in expected.items()
    }
    for row in found:
        means = [mean for _, mean in expected[row["kind"], row["since"]]]
        assert row["pending_mean"] == pytest.approx(sum(means) / len(means), abs=1e-9)
        assert row["until"] - row["since"] == timedelta(minutes=step)


def test_the_first_and_the_last_step_end_with_the_coverage() -> None:
    since, until = NOON + 0.5 * MINUTE, NOON + 6.25 * MINUTE
    # Four on average for half a minute, two for five minutes without a change, one for a quarter.
    rows = [
        (at(0), since, at(1), "fetch", "Fetch", 5, 4.0, 2),
        (at(6), at(6), until, "fetch", "Fetch", 2, 1.0, 0),
    ]
    coverage = Coverage(NOON_US + 30_000_000, NOON_US + 375_000_000)
    found = pending_in_steps(table(PENDING, *rows), 5, coverage).sort_by("since").to_pylist()

    assert [(row["since"], row["until"]) for row in found] == [(since, at(5)), (at(5), until)]
    assert [row["pending_mean"] for row in found] == [
        pytest.approx((4 * 0.5 + 2 * 4) / 4.5),
        pytest.approx((2 * 1 + 1 * 0.25) / 1.25),
    ]
    checks = table(FAN_OUT, (at(0), "fetch", 1, 2, 1, 2.0, 2.0, 2))
    (row,) = fan_out_in_steps(checks, 5, coverage).to_pylist()
    assert (row["since"], row["until"]) == (since, at(5))
