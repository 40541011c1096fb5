"""Each design under load, in virtual time."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks.load.distribution import DISTRIBUTIONS, Distribution, Load
from benchmarks.load.kafka_subjects import Kafka08Subject, KafkaSubject
from benchmarks.load.measurement import ACHIEVED, Measurement, Point, percentile
from benchmarks.load.plan import Plan
from benchmarks.load.purgatory_subject import PurgatorySubject, Request
from benchmarks.load.subject import Subject
from benchmarks.load.trial import measure, measure_generator
from benchmarks.load.worker import SUBJECTS
from purgatory.testing import VirtualTimeLoop

RATE = 5_000


def drawn(distribution: Distribution = DISTRIBUTIONS[0]) -> Plan:
    return Plan.draw(Load(distribution, RATE, 0.5), seed=1)


@pytest.mark.parametrize("distribution", DISTRIBUTIONS, ids=str)
@pytest.mark.parametrize("subject", SUBJECTS.values())
async def test_a_design_ends_every_request_once_and_as_planned(
    subject: type[Subject[Any]], distribution: Distribution, virtual_time: VirtualTimeLoop
) -> None:
    plan = drawn(distribution)
    measured = await measure(subject, plan, virtual_time.time)
    assert measured.completed is not None
    assert measured.expired is not None
    assert measured.sent == measured.completed + measured.expired == len(plan)
    # But for those that would complete in the very milliseconds in which they expire.
    assert measured.completed == pytest.approx(sum(plan.completes), rel=0.02)
    assert measured.achieved == pytest.approx(RATE, rel=0.03)
    assert measured.behind_ms <= 2


async def test_purgatory_expires_none_early_and_none_a_tick_late(virtual_time: VirtualTimeLoop) -> None:
    measured = await measure(PurgatorySubject, drawn(), virtual_time.time)
    assert measured.late_p50_ms is not None
    assert measured.late_p99_ms is not None
    assert 0 <= measured.late_p50_ms <= measured.late_p99_ms <= 1.001


async def test_purgatory_holds_nothing_when_all_have_ended(virtual_time: VirtualTimeLoop) -> None:
    assert (await measure(PurgatorySubject, drawn(), virtual_time.time)).held == 0


@pytest.mark.parametrize("subject", [Kafka08Subject, KafkaSubject])
async def test_the_designs_that_purge_hold_what_has_ended_but_not_much_of_it(
    subject: type[Subject[Any]], virtual_time: VirtualTimeLoop
) -> None:
    measured = await measure(subject, drawn(), virtual_time.time)
    assert measured.held is not None
    # A purge is due after 1,000 requests with 3 keys each; more of them may come before it.
    assert 0 < measured.held < 2 * 3_000 < measured.sent * 3


async def test_a_run_in_which_nothing_expires_has_no_lateness(virtual_time: VirtualTimeLoop) -> None:
    measured = await measure(
        PurgatorySubject, drawn(Distribution(1.0, 1.1, timeout_ms=500.0)), virtual_time.time
    )
    assert measured.expired == 0
    assert measured.late_p50_ms is measured.late_p99_ms is None


async def test_a_design_that_loses_a_request_is_no_design(virtual_time: VirtualTimeLoop) -> None:
    class Forgetful(PurgatorySubject):
        def offer(self, number: int) -> Request:
            request = super().offer(number)
            if number == 7:
                request.cancel()
            return request

    with pytest.raises(AssertionError, match="1 never ended and 0 more than once"):
        await measure(Forgetful, drawn(), virtual_time.time)


async def test_a_saturated_run_achieves_what_was_sent_in_its_time(virtual_time: VirtualTimeLoop) -> None:
    class Slow(PurgatorySubject):
        def offer(self, number: int) -> Request:
            virtual_time.jump(0.001)
            return super().offer(number)

    measured = await measure(Slow, drawn(), virtual_time.time)
    assert measured.achieved == pytest.approx(1_000, rel=0.05)
    assert measured.behind_ms > 100
    assert Point(RATE, [measured]).saturated


async def test_the_generator_alone_sends_everything(virtual_time: VirtualTimeLoop) -> None:
    plan = drawn()
    measured = await measure_generator(plan, virtual_time.time)
    assert measured.sent == len(plan)
    assert measured.achieved == pytest.approx(RATE, rel=0.03)
    assert measured.completed is measured.expired is measured.held is None


@pytest.mark.parametrize(
    ("achieved", "behind_ms", "saturated"),
    [
        (1_000, 0, False),
        (ACHIEVED * 1_000, 100, False),
        (ACHIEVED * 1_000 - 1, 0, True),
        (1_000, 101, True),
    ],
)
def test_saturated_is_what_misses_the_rate_or_is_behind(
    achieved: float, behind_ms: float, saturated: bool
) -> None:
    assert Point(1_000, [Measurement(achieved, behind_ms, sent=1)]).saturated is saturated


def test_saturation_goes_by_the_median_of_the_repetitions() -> None:
    slow, fast = Measurement(500, 900, sent=1), Measurement(1_000, 0, sent=1)
    assert not Point(1_000, [fast, slow, fast]).saturated
    assert Point(1_000, [slow, fast, slow]).saturated


def test_percentiles_are_figures_that_were_measured() -> None:
    ascending = [float(n) for n in range(1, 101)]
    assert percentile(ascending, 50) == 50
    assert percentile(ascending, 99) == 99
    assert percentile([3.0], 50) == percentile([3.0], 99) == 3
