"""The effect of another timeout, computed by hand and against a known distribution."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Sequence
from statistics import NormalDist
from types import SimpleNamespace as Row
from typing import Any

import pyarrow as pa
import pytest

from purgatory.pipeline.advise import survival
from purgatory.pipeline.advise.effects import effects
from tests.pipeline.advise.waits import Wait, curves_of, waited


def advised(
    operations: Iterable[dict[str, Any]], *shares: float, others: Sequence[tuple[str, int]] = ()
) -> dict[tuple[str, float], Row]:
    """The readings with the effects of their timeouts; under other timeouts only these effects."""
    curves = curves_of(operations)
    readings = survival.timeouts(shares, curves).to_pylist()
    known = [(row["kind"], row["timeout_us"]) for row in readings if row["timeout_us"] is not None]
    names = ("purgatory", "kind", "key", "timeout_us")
    asked = [("fetch", kind, None, timeout) for kind, timeout in (*known, *others)]
    timeouts = pa.Table.from_pylist([dict(zip(names, each, strict=True)) for each in asked], TIMEOUTS)
    found = {(row["kind"], row["timeout_us"]): row for row in effects(timeouts, curves).to_pylist()}
    assert len(found) == len(set(asked))
    nothing: dict[str, Any] = dict.fromkeys(next(iter(found.values())))
    return {
        (row["kind"], row["share"]): Row(**(nothing | found.get((row["kind"], row["timeout_us"]), {}) | row))
        for row in readings
    } | {key: Row(**row) for key, row in found.items()}


TIMEOUTS = pa.schema(
    [("purgatory", pa.string()), ("kind", pa.string()), ("key", pa.string()), ("timeout_us", pa.int64())]
)

# Log-normal waits, censored at 250 ms, at 4 s, or by a cancellation: until completion, timeout, cancellation.
MEDIAN, SIGMA = 200_000, 1.0
DRAW = random.Random(11)
TRUTH = [
    (
        int(DRAW.lognormvariate(math.log(MEDIAN), SIGMA)),
        DRAW.choice([250_000, 4_000_000]),
        int(DRAW.expovariate(1 / 2_000_000)),
    )
    for _ in range(6_000)
]


def recorded() -> Iterable[Wait]:
    for completion, timeout, cancellation in TRUTH:
        wait = min(completion, timeout, cancellation)
        outcome = "completed" if wait == completion else "expired" if wait == timeout else "cancelled"
        yield "drawn", wait, outcome


@pytest.fixture(scope="module")
def worked() -> dict[tuple[str, float], Row]:
    cut_short = [("cut short", wait, "completed") for wait in (1, 2, 3, 8, 9)]
    left = [("left", 2, "cancelled"), ("left", 2, "failed"), ("left", 4, "completed")]
    gone_on = [("gone on", 2, "expired"), *(("gone on", wait, "completed") for wait in (4, 4, 6))]
    unknown = [("unknown", 1, "completed"), ("unknown", 3, "expired")]
    at_once = [("at once", 2, "completed")] * 3
    operations = [
        *(waited(*each) for each in (*cut_short, *left, *gone_on, *unknown, *at_once, *recorded())),
        waited("closed", 2, "expired", lateness_us=None),
        waited("closed", 4, "completed"),
    ]
    # Twice the same does no harm.
    others = [("cut short", 5), ("cut short", 20), ("cut short", 0), ("gone on", 5), ("unknown", 4)]
    return advised(operations, 0.5, 0.9, 0.95, others=others * 2)


def change(row: Row) -> tuple[int | None, float | None, float | None]:
    return row.timeout_us, row.more_completed, row.waited_less_us


def interval(row: Row) -> tuple[float, float]:
    return row.more_completed_low, row.more_completed_high


def test_a_shorter_timeout_ends_longer_waits(worked: dict[tuple[str, float], Row]) -> None:
    assert change(worked["cut short", 0.5]) == (3, -2, 5 + 6)
    assert change(worked["cut short", 0.9]) == (9, 0, 0)


def test_with_a_longer_timeout_expired_operations_continue_like_those_that_waited_as_long(
    worked: dict[tuple[str, float], Row],
) -> None:
    # With 4, two of the three that wait beyond 2 complete. So the expired one completes with a probability of
    # two thirds, and waits for 2 more in any case. The one that completed at 6 would not, and waits 2 less.
    assert change(worked["gone on", 0.5]) == pytest.approx((4, 2 / 3 - 1, 0))
    # With 6 it completes: with a probability of two thirds after 2 more, else after 4 more.
    assert change(worked["gone on", 0.9]) == pytest.approx((6, 1, -(2 * 2 / 3 + 4 / 3)))


def test_a_timeout_between_two_waits_counts_up_to_the_first(worked: dict[tuple[str, float], Row]) -> None:
    assert change(worked["cut short", 5]) == (5, -2, 3 + 4)
    assert worked["cut short", 5].completes == pytest.approx(0.6)
    # The expired one waits for 2 more with a probability of two thirds, else for 3 more.
    assert change(worked["gone on", 5]) == pytest.approx((5, 2 / 3 - 1, 1 - 2 * 2 / 3 - 3 / 3))


def test_what_a_shorter_timeout_cuts_off_is_known_without_an_interval(
    worked: dict[tuple[str, float], Row],
) -> None:
    assert interval(worked["cut short", 0.5]) == (-2, -2)


def test_the_interval_of_a_longer_timeout_is_that_of_the_share_that_would_not_complete(
    worked: dict[tuple[str, float], Row],
) -> None:
    # Of three at risk two complete, so the logarithm of a third has the variance 2 / (3 * 1).
    factor = math.exp(NormalDist().inv_cdf(0.975) * math.sqrt(2 / 3))
    # No more than the one that expired can be left.
    assert interval(worked["gone on", 0.5]) == pytest.approx((1 - 1 - 1, 1 - 1 / 3 / factor - 1))
    # Where all have completed, the bound is the last one before.
    bound = 1 - worked["gone on", 0.5].completes_low
    assert interval(worked["gone on", 0.9]) == pytest.approx((1 - bound, 1))


def test_the_share_that_completes_has_the_interval_of_the_curve(
    worked: dict[tuple[str, float], Row],
) -> None:
    row = worked["unknown", 0.5]
    # One of two: the standard error of log(-log(1/2)) is sqrt(1/2) / log(2).
    power = math.exp(NormalDist().inv_cdf(0.975) * math.sqrt(0.5) / math.log(2))
    low, high = 1 - 0.5 ** (1 / power), 1 - 0.5**power
    assert (row.completes, row.completes_low, row.completes_high) == pytest.approx((0.5, low, high))


def test_if_all_complete_at_once_the_bound_is_that_of_their_number(
    worked: dict[tuple[str, float], Row],
) -> None:
    row = worked["at once", 0.5]
    assert (row.completes, row.completes_low, row.completes_high) == (1, pytest.approx(0.025 ** (1 / 3)), 1)


def test_a_timeout_that_nobody_waited_for_may_complete_all(worked: dict[tuple[str, float], Row]) -> None:
    beyond = worked["unknown", 4]
    assert (beyond.completes, beyond.completes_high) == (pytest.approx(0.5), 1)
    assert change(beyond) == (4, None, None)
    # Here nobody would have waited for longer.
    assert change(worked["cut short", 20]) == (20, 0, 0)


def test_a_timeout_shorter_than_all_waits_completes_none(worked: dict[tuple[str, float], Row]) -> None:
    row = worked["cut short", 0]
    assert (row.completes, row.completes_low, row.completes_high) == (0, 0, 0)
    assert change(row) == (0, -5, 1 + 2 + 3 + 8 + 9)


@pytest.mark.parametrize("stratum", ["left", "closed"])
def test_a_longer_timeout_changes_only_operations_that_their_timeout_ended(
    worked: dict[tuple[str, float], Row], stratum: str
) -> None:
    assert change(worked[stratum, 0.9]) == (4, 0, 0)


def test_a_timeout_beyond_the_longest_wait_has_no_effect(
    worked: dict[tuple[str, float], Row],
) -> None:
    assert change(worked["unknown", 0.5]) == (1, 0, 2)
    assert change(worked["unknown", 0.9]) == (None, None, None)
    assert worked["unknown", 0.9].known_share == pytest.approx(0.5)


def test_the_estimate_recovers_the_distribution_of_censored_waits(
    worked: dict[tuple[str, float], Row],
) -> None:
    law = NormalDist(math.log(MEDIAN), SIGMA)

    def lasts(wait: float) -> float:
        return 1 - law.cdf(math.log(wait))

    for share in (0.5, 0.9, 0.95):
        row = worked["drawn", share]
        right = math.exp(law.inv_cdf(share))
        assert row.timeout_low_us <= right <= row.timeout_high_us
        assert row.timeout_us == pytest.approx(right, rel=0.06)
        assert row.naive_us < 0.75 * right

        # Cancelled operations stay cancelled, unless this timeout comes first.
        seen = [
            (completion, min(cancellation, row.timeout_us) if cancellation < timeout else row.timeout_us)
            for completion, timeout, cancellation in TRUTH
        ]
        completed = sum(completion <= end for completion, end in seen)
        waited = sum(map(min, seen))
        more = completed - sum(outcome == "completed" for _, _, outcome in recorded())
        less = sum(wait for _, wait, _ in recorded()) - waited
        assert row.more_completed == pytest.approx(more, rel=0.06)
        assert row.waited_less_us == pytest.approx(less, rel=0.06)

        until = row.timeout_us
        expected = sum(
            (outcome == "expired" and wait < until and 1 - lasts(until) / lasts(wait))
            - (outcome == "completed" and wait > until)
            for _, wait, outcome in recorded()
        )
        assert row.more_completed_low <= expected <= row.more_completed_high
        assert row.completes_low <= law.cdf(math.log(until)) <= row.completes_high
