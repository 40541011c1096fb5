"""The record of the last minute."""

from __future__ import annotations

import random
import weakref
from bisect import bisect_left
from collections import Counter

import pytest

from purgatory import Purgatory
from purgatory._histogram import DASHBOARD_BOUNDS
from purgatory.testing import ManualClock
from purgatory.web.dashboard.recorder import KEPT_FAILURES, WINDOW, Recorder
from tests.operations import Gate, raising


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
def purgatory(clock: ManualClock, recorder: Recorder) -> Purgatory:
    return clock.purgatory(observers=[recorder])


def test_before_anything_has_happened_all_counts_are_zero(recorder: Recorder) -> None:
    rates = recorder.rates(1000.5)
    assert all(row == [0] * WINDOW for row in [*rates.ended.values(), rates.checks, rates.tried])
    assert sum(recorder.waits(1000.5).counts) == sum(recorder.lateness(1000.5).counts) == 0
    assert recorder.busiest_keys(1000.5) == recorder.failures() == []


def test_operations_are_counted_by_outcome_in_the_second_in_which_they_ended(
    clock: ManualClock, purgatory: Purgatory, recorder: Recorder
) -> None:
    clock.advance(10)
    for _ in range(3):
        purgatory.try_complete_else_watch(Gate(opened=True), ["a"])
    purgatory.try_complete_else_watch(Gate(), ["a"]).cancel()
    failing = purgatory.try_complete_else_watch(Gate(), ["a"])
    failing.completing = raising(ValueError("bad"))
    purgatory.try_complete_else_watch(Gate(1.5), ["a"])
    failing.force_complete()
    with pytest.raises(ExceptionGroup):
        clock.advance(2)
    ended = recorder.rates(12.0).ended
    assert {outcome: row[-2:] for outcome, row in ended.items()} == {
        "completed": [3, 0],
        "expired": [0, 1],
        "cancelled": [1, 0],
        "failed": [1, 0],
    }
    assert sum(map(sum, ended.values())) == 6


def test_the_rates_leave_out_the_second_that_is_not_over(
    clock: ManualClock, purgatory: Purgatory, recorder: Recorder
) -> None:
    clock.advance(5.25)
    purgatory.try_complete_else_watch(Gate(opened=True), ["a"])
    assert sum(recorder.rates(5.75).ended["completed"]) == 0
    assert recorder.rates(6.0).ended["completed"][-1] == 1


def test_counts_are_forgotten_after_a_minute(
    clock: ManualClock, purgatory: Purgatory, recorder: Recorder
) -> None:
    purgatory.try_complete_else_watch(Gate(0.5), ["a"])
    clock.advance(1)
    purgatory.check_and_complete("a")
    assert sum(recorder.rates(60.9).ended["expired"]) == sum(recorder.waits(60.9).counts) == 1
    assert sum(recorder.rates(61.0).ended["expired"]) == sum(recorder.waits(61.0).counts) == 0
    assert sum(recorder.lateness(61.0).counts) == 0


def test_rates_and_waits_equal_a_naive_count(
    clock: ManualClock, purgatory: Purgatory, recorder: Recorder
) -> None:
    choice = random.Random(6)
    ended: list[tuple[float, float]] = []
    for _ in range(3_000):
        clock.advance(choice.choice([0, 0, 0.01, 0.3, 7]))
        began = clock.time()
        gate = purgatory.try_complete_else_watch(Gate(), ["a"])
        clock.advance(choice.expovariate(10))
        gate.force_complete()
        ended.append((clock.time(), clock.time() - began))
    now = clock.time()
    by_second = Counter(int(at) for at, _ in ended)
    last = int(now)
    assert recorder.rates(now).ended["completed"] == [by_second[at] for at in range(last - WINDOW, last)]
    buckets = Counter(
        bisect_left(DASHBOARD_BOUNDS, waited) for at, waited in ended if int(at) >= last - WINDOW
    )
    assert recorder.waits(now).counts == [buckets[bucket] for bucket in range(len(DASHBOARD_BOUNDS) + 1)]


def test_only_operations_that_reach_their_deadlines_have_a_lateness(
    clock: ManualClock, recorder: Recorder
) -> None:
    purgatory = clock.purgatory(tick=0.5, observers=[recorder])
    purgatory.try_complete_else_watch(Gate(0.3), ["a"])
    # One without a deadline, and one that does not reach it.
    purgatory.try_complete_else_watch(Gate(0), ["a"])
    purgatory.try_complete_else_watch(Gate(60), ["a"])
    clock.advance(1)
    for gate in purgatory.operations():
        gate.force_complete()
    lateness = recorder.lateness(1.0)
    assert sum(lateness.counts) == 1
    assert lateness.sum == pytest.approx(0.2)


async def test_operations_that_closing_expires_have_no_lateness(recorder: Recorder) -> None:
    async with Purgatory(observers=[recorder]) as purgatory:
        purgatory.try_complete_else_watch(Gate(60), ["a"])
        now = purgatory.timer.clock()
    assert sum(recorder.lateness(now).counts) == 0
    assert sum(recorder.waits(now).counts) == 1


def test_checks_are_counted_with_the_operations_they_tried_and_the_busiest_key_is_recorded(
    clock: ManualClock, purgatory: Purgatory, recorder: Recorder
) -> None:
    for key, many in {"a": 2, "b": 5, "c": 1}.items():
        for _ in range(many):
            purgatory.try_complete_else_watch(Gate(), [key])
    for key in ("a", "b", "c", "unwatched"):
        purgatory.check_and_complete(key)
    clock.advance(1)
    purgatory.check_and_complete("unwatched")
    clock.advance(1)
    purgatory.check_and_complete("a")
    rates = recorder.rates(3.0)
    assert rates.checks[-3:] == [4, 1, 1]
    assert rates.tried[-3:] == [8, 0, 2]
    assert recorder.busiest_keys(3.0) == ["b", "a"]


def test_failures_are_kept_as_text_the_newest_first(
    clock: ManualClock, purgatory: Purgatory, recorder: Recorder
) -> None:
    for number in range(KEPT_FAILURES + 2):
        purgatory.try_complete_else_watch(Gate(trying=raising(ValueError(number))), ["a", "b", "c", "d"])
    latest = recorder.failures()[0]
    assert (latest.at, latest.kind, latest.keys) == (0.0, "Gate", ["'a'", "'b'", "'c'"])
    assert [failed.error for failed in recorder.failures()] == [
        f"ValueError({number})" for number in range(KEPT_FAILURES + 1, 1, -1)
    ]
    # They still count as unseen, since nobody has awaited them.
    with pytest.raises(ExceptionGroup) as raised:
        clock.advance(0)
    assert len(raised.value.exceptions) == KEPT_FAILURES + 2


def test_no_operation_is_kept_alive(collector_off: None, purgatory: Purgatory, recorder: Recorder) -> None:
    gate = Gate(opened=True)
    reference = weakref.ref(gate)
    purgatory.try_complete_else_watch(gate, ["a"])
    del gate
    assert reference() is None
    assert sum(recorder.waits(0.0).counts) == 1


class Key:
    """A key to which a weak reference can be made."""


@pytest.fixture
def busiest(collector_off: None, purgatory: Purgatory) -> weakref.ref[Key]:
    """A key that only the recorder refers to."""
    key = Key()
    gate = purgatory.try_complete_else_watch(Gate(), [key])
    purgatory.check_and_complete(key)
    gate.cancel()
    return weakref.ref(key)


def test_a_busiest_key_is_released_after_a_minute_when_a_viewer_looks(
    recorder: Recorder, busiest: weakref.ref[Key]
) -> None:
    assert recorder.busiest_keys(WINDOW + 0.9) == [busiest()]
    assert busiest() is not None
    assert recorder.busiest_keys(WINDOW + 1.0) == []
    assert busiest() is None


def test_a_busiest_key_is_released_after_a_minute_when_an_operation_ends(
    clock: ManualClock, purgatory: Purgatory, busiest: weakref.ref[Key]
) -> None:
    clock.advance(WINDOW + 1.0)
    purgatory.try_complete_else_watch(Gate(opened=True), ["a"])
    assert busiest() is None


def test_it_never_keeps_more_than_a_minute(
    clock: ManualClock, purgatory: Purgatory, recorder: Recorder
) -> None:
    for _ in range(5 * WINDOW):
        purgatory.try_complete_else_watch(Gate(opened=True), ["a"])
        clock.advance(1)
    assert len(recorder._seconds) == WINDOW + 1
    assert recorder.rates(clock.time()).ended["completed"] == [1] * WINDOW
