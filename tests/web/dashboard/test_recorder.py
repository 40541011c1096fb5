"""The record of the last minute."""

from __future__ import annotations

import random
import weakref
from bisect import bisect_left
from collections import Counter

import pytest

from purgatory import Purgatory, PurgatoryFull
from purgatory._figures.histogram import LATENESS_BOUNDS, WAIT_BOUNDS
from purgatory.observer import OUTCOMES
from purgatory.testing import ManualClock
from purgatory.web.dashboard.recorder import BUSY_KEYS, WINDOW, Recorder
from tests.operations import Gate, raising


@pytest.fixture
def recorder() -> Recorder:
    return Recorder(lambda: 0)


@pytest.fixture
def purgatory(clock: ManualClock, recorder: Recorder) -> Purgatory:
    return clock.purgatory(observers=[recorder])


def waits(recorder: Recorder, now: float) -> int:
    """How many waits it knows."""
    return sum(sum(histogram.counts) for histogram in recorder.waits(now).values())


def test_before_anything_has_happened_all_counts_are_zero(recorder: Recorder) -> None:
    rates = recorder.rates(1000.5)
    assert all(row == [0] * WINDOW for row in [*rates.ended.values(), rates.checks, rates.tried])
    assert waits(recorder, 1000.5) == sum(recorder.lateness(1000.5).counts) == 0
    assert recorder.busy_keys(1000.5) == {}
    assert not recorder.failures.latest()
    assert not recorder.ended.latest("completed")


def test_operations_are_counted_by_outcome_in_the_second_in_which_they_ended(
    clock: ManualClock, purgatory: Purgatory, recorder: Recorder
) -> None:
    clock.advance(10)
    for _ in range(3):
        purgatory.try_complete_else_watch(Gate(opened=True), ["a"])
    for _ in range(2):
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
        "cancelled": [2, 0],
        "failed": [1, 0],
    }
    assert sum(map(sum, ended.values())) == 7


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
    assert sum(recorder.rates(60.9).ended["expired"]) == waits(recorder, 60.9) == 1
    assert sum(recorder.rates(61.0).ended["expired"]) == waits(recorder, 61.0) == 0
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
    buckets = Counter(bisect_left(WAIT_BOUNDS, waited) for at, waited in ended if int(at) >= last - WINDOW)
    counts = recorder.waits(now)["completed"].counts
    assert counts == [buckets[bucket] for bucket in range(len(WAIT_BOUNDS) + 1)]


def test_waits_are_split_by_outcome_with_the_bounds_of_the_metrics(
    clock: ManualClock, purgatory: Purgatory, recorder: Recorder
) -> None:
    purgatory.try_complete_else_watch(Gate(30), ["a"])
    quick = [purgatory.try_complete_else_watch(Gate(60), ["a"]) for _ in range(99)]
    clock.advance(0.003)
    for gate in quick:
        gate.force_complete()
    clock.advance(30)
    split = recorder.waits(clock.time())
    assert set(split) == set(OUTCOMES)
    assert all(histogram.bounds == WAIT_BOUNDS for histogram in split.values())
    assert recorder.lateness(clock.time()).bounds == LATENESS_BOUNDS
    # Together, the 99th percentile would be the timeout.
    assert split["completed"].quantile(0.99) == 0.004
    assert split["expired"].quantile(0.5) == 32.768


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
    assert waits(recorder, now) == 1


def test_checks_are_counted_with_the_operations_they_tried_also_by_key(
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
    rates = recorder.rates(4.0)
    assert rates.checks[-4:] == [4, 1, 1, 0]
    assert rates.tried[-4:] == [8, 0, 2, 0]
    # In the four seconds since the first check.
    assert recorder.busy_keys(4.0) == {"b": 5 / 4, "a": 4 / 4, "c": 1 / 4}
    assert list(recorder.busy_keys(4.0)) == ["b", "a", "c"]


def test_tries_by_key_are_those_of_a_second_in_the_last_minute(
    clock: ManualClock, purgatory: Purgatory, recorder: Recorder
) -> None:
    purgatory.try_complete_else_watch(Gate(), ["a"])
    for _ in range(3 * WINDOW):
        purgatory.check_and_complete("a")
        purgatory.check_and_complete("a")
        clock.advance(1)
    assert recorder.busy_keys(clock.time()) == {"a": pytest.approx(2)}


def test_of_many_busy_keys_the_busiest_ones_are_kept(
    clock: ManualClock, purgatory: Purgatory, recorder: Recorder
) -> None:
    for number in range(3 * BUSY_KEYS):
        for _ in range(1 + number):
            purgatory.try_complete_else_watch(Gate(), [number])
        purgatory.check_and_complete(number)
    clock.advance(2)
    purgatory.check_and_complete("a")
    assert list(recorder.busy_keys(2.0)) == list(range(3 * BUSY_KEYS - 1, 2 * BUSY_KEYS - 1, -1))


def test_the_first_operation_of_each_second_and_outcome_is_a_sample_of_those_that_ended(
    clock: ManualClock, purgatory: Purgatory, recorder: Recorder
) -> None:
    for second in range(3):
        for number in range(5):
            gate = purgatory.try_complete_else_watch(Gate(60), [f"{second} {number}"])
            clock.advance(0.1)
            gate.force_complete()
        purgatory.try_complete_else_watch(Gate(), ["b", "c", "d", "e"]).cancel()
        clock.advance(0.5)
    completed = recorder.ended.latest("completed")
    assert [operation.keys for operation in completed] == [["'2 0'"], ["'1 0'"], ["'0 0'"]]
    assert completed[0].at == pytest.approx(2.1)
    assert completed[0].waited == pytest.approx(0.1)
    assert (completed[0].kind, completed[0].tries, completed[0].more_keys) == ("Gate", 1, 0)
    cancelled = recorder.ended.latest("cancelled")
    assert [(operation.keys, operation.more_keys) for operation in cancelled] == [
        (["'b'", "'c'", "'d'"], 1)
    ] * 3
    assert recorder.ended.latest("expired") == []


def test_refusals_are_counted_since_a_moment_that_is_a_minute_old(clock: ManualClock) -> None:
    purgatory = clock.purgatory(max_pending=1)
    recorder = Recorder(lambda: purgatory.statistics().refused)
    purgatory.add_observer(recorder)
    purgatory.try_complete_else_watch(Gate(), ["a"])
    for second in range(200):
        # Each check begins a second of the record. Two operations a second are refused.
        purgatory.check_and_complete("a")
        for _ in range(2):
            with pytest.raises(PurgatoryFull):
                purgatory.try_complete_else_watch(Gate(), ["b"])
        refused, since = recorder.refusals(clock.time())
        assert refused == 2 * (second + 1 - max(0, since))
        assert since == max(-1, second - WINDOW - 1)
        clock.advance(1)


def test_refusals_while_nothing_else_happens_are_counted_with_the_time_that_they_took(
    clock: ManualClock,
) -> None:
    purgatory = clock.purgatory(max_pending=1)
    recorder = Recorder(lambda: purgatory.statistics().refused)
    purgatory.add_observer(recorder)
    purgatory.try_complete_else_watch(Gate(), ["a"])
    clock.advance(10)
    purgatory.check_and_complete("a")
    clock.advance(290)
    with pytest.raises(PurgatoryFull):
        purgatory.try_complete_else_watch(Gate(), ["b"])
    assert recorder.refusals(clock.time()) == (1, 10.0)
    clock.advance(WINDOW + 1)
    # The look at 300 s is a moment, too.
    assert recorder.refusals(clock.time()) == (0, 300.0)


def test_failures_are_noted(clock: ManualClock, purgatory: Purgatory, recorder: Recorder) -> None:
    purgatory.try_complete_else_watch(Gate(trying=raising(ValueError("bad"))), ["a"])
    assert [failures.error for failures in recorder.failures.latest()] == ["ValueError('bad')"]
    # It still counts as unseen, since nobody has awaited it.
    with pytest.raises(ExceptionGroup):
        clock.advance(0)


def test_no_operation_is_kept_alive(collector_off: None, purgatory: Purgatory, recorder: Recorder) -> None:
    gate = Gate(opened=True)
    reference = weakref.ref(gate)
    purgatory.try_complete_else_watch(gate, ["a"])
    del gate
    assert reference() is None
    assert waits(recorder, 0.0) == 1


class Key:
    """A key to which a weak reference can be made."""


@pytest.fixture
def busy(collector_off: None, purgatory: Purgatory) -> weakref.ref[Key]:
    """A key that only the recorder refers to."""
    key = Key()
    gate = purgatory.try_complete_else_watch(Gate(), [key])
    purgatory.check_and_complete(key)
    gate.cancel()
    return weakref.ref(key)


def test_a_busy_key_is_released_after_a_minute_when_a_viewer_looks(
    recorder: Recorder, busy: weakref.ref[Key]
) -> None:
    assert list(recorder.busy_keys(WINDOW + 0.9)) == [busy()]
    assert busy() is not None
    assert recorder.busy_keys(WINDOW + 1.0) == {}
    assert busy() is None


def test_a_busy_key_is_released_after_a_minute_when_an_operation_ends(
    clock: ManualClock, purgatory: Purgatory, busy: weakref.ref[Key]
) -> None:
    clock.advance(WINDOW + 1.0)
    purgatory.try_complete_else_watch(Gate(opened=True), ["a"])
    assert busy() is None


def test_it_never_keeps_more_than_a_minute(
    clock: ManualClock, purgatory: Purgatory, recorder: Recorder
) -> None:
    for _ in range(5 * WINDOW):
        purgatory.try_complete_else_watch(Gate(opened=True), ["a"])
        clock.advance(1)
    assert len(recorder._seconds) == WINDOW + 1
    assert recorder.rates(clock.time()).ended["completed"] == [1] * WINDOW
