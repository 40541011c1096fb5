"""The effect of another timeout, computed by hand and against a known distribution."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable
from statistics import NormalDist

import pytest
from pyspark.sql import DataFrame, Row, SparkSession

from purgatory.pipeline.transforms import survival

Wait = tuple[str, int, str]
Waits = Callable[[Iterable[Wait]], DataFrame]


def advised(operations: DataFrame, *shares: float) -> dict[tuple[str, float], Row]:
    # A checkpoint, as the job makes one; else the curves would be computed twice.
    curves = survival.curves(survival.ends(operations)).localCheckpoint()
    rows = survival.changes(curves, survival.timeouts(curves, shares)).collect()
    return {(row.stratum, row.share): row for row in rows}


@pytest.fixture(scope="module")
def worked(waits: Waits, spark: SparkSession) -> dict[tuple[str, float], Row]:
    cut_short = [("cut short", wait, "completed") for wait in (1, 2, 3, 8, 9)]
    left = [("left", 2, "cancelled"), ("left", 2, "failed"), ("left", 4, "completed")]
    gone_on = [("gone on", 2, "expired"), *(("gone on", wait, "completed") for wait in (4, 4, 6))]
    unknown = [("unknown", 1, "completed"), ("unknown", 3, "expired")]
    closed = spark.createDataFrame(
        [("closed", 2, "expired", None), ("closed", 4, "completed", None)],
        "stratum string, waited_us long, outcome string, lateness_us long",
    )
    operations = waits([*cut_short, *left, *gone_on, *unknown]).unionByName(closed)
    return advised(operations, 0.5, 0.9)


def change(row: Row) -> tuple[int | None, float | None, float | None]:
    return row.timeout_us, row.more_completed, row.waited_less_us


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
    waits: Waits,
) -> None:
    """Log-normal waits, censored at 250 ms, at 4 s, or by a cancellation."""
    median, sigma, number = 200_000, 1.0, 6_000
    draw = random.Random(11)
    truth = [
        (
            int(draw.lognormvariate(math.log(median), sigma)),
            draw.choice([250_000, 4_000_000]),
            int(draw.expovariate(1 / 2_000_000)),
        )
        for _ in range(number)
    ]
    recorded = []
    for completion, timeout, cancellation in truth:
        wait = min(completion, timeout, cancellation)
        outcome = "completed" if wait == completion else "expired" if wait == timeout else "cancelled"
        recorded.append(("a", wait, outcome))

    for (_, share), row in advised(waits(recorded), 0.5, 0.9, 0.95).items():
        right = median * math.exp(sigma * NormalDist().inv_cdf(share))
        assert row.timeout_low_us <= right <= row.timeout_high_us
        assert row.timeout_us == pytest.approx(right, rel=0.06)
        assert row.naive_us < 0.75 * right

        # Cancelled operations stay cancelled, unless this timeout comes first.
        seen = [
            (completion, min(cancellation, row.timeout_us) if cancellation < timeout else row.timeout_us)
            for completion, timeout, cancellation in truth
        ]
        completed = sum(completion <= end for completion, end in seen)
        waited = sum(map(min, seen))
        more = completed - sum(outcome == "completed" for _, _, outcome in recorded)
        less = sum(wait for _, wait, _ in recorded) - waited
        assert row.more_completed == pytest.approx(more, rel=0.06)
        assert row.waited_less_us == pytest.approx(less, rel=0.06)
