"""What happened in the last minute."""

from __future__ import annotations

import gc
import random
import weakref
from collections import Counter

import pytest

from purgatory import Purgatory
from purgatory.testing import ManualClock
from purgatory.web.dashboard.recorder import BUCKETS, KEPT_FAILURES, WINDOW, Recorder
from tests.operations import Gate, raising


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
def held(clock: ManualClock, recorder: Recorder) -> Purgatory:
    return clock.purgatory(observers=[recorder])


def test_before_anything_has_happened_all_counts_are_zero(recorder: Recorder) -> None:
    rates = recorder.rates(1000.5)
    assert rates.completed == rates.failed == rates.checks == [0] * WINDOW
    assert recorder.waits(1000.5) == recorder.lateness(1000.5) == [0] * BUCKETS
    assert recorder.busiest_keys(1000.5) == recorder.failures() == []


def test_operations_are_counted_in_the_second_in_which_they_ended_by_how(
    clock: ManualClock, held: Purgatory, recorder: Recorder
) -> None:
    clock.advance(10)
    for _ in range(3):
        held.try_complete_else_watch(Gate(opened=True), ["a"])
    held.try_complete_else_watch(Gate(), ["a"]).cancel()
    failing = held.try_complete_else_watch(Gate(), ["a"])
    failing.completing = raising(ValueError("bad"))
    held.try_complete_else_watch(Gate(1.5), ["a"])
    failing.force_complete()
    with pytest.raises(ExceptionGroup):
        clock.advance(2)
    rates = recorder.rates(12.0)
    assert (rates.completed[-2:], rates.cancelled[-2:], rates.failed[-2:]) == ([3, 0], [1, 0], [1, 0])
    assert rates.expired[-2:] == [0, 1]
    assert sum(map(sum, [rates.completed, rates.cancelled, rates.failed, rates.expired])) == 6


def test_the_second_under_way_is_not_among_the_rates(
    clock: ManualClock, held: Purgatory, recorder: Recorder
) -> None:
    clock.advance(5.25)
    held.try_complete_else_watch(Gate(opened=True), ["a"])
    assert sum(recorder.rates(5.75).completed) == 0
    assert recorder.rates(6.0).completed[-1] == 1


def test_what_is_older_than_a_minute_is_forgotten(
    clock: ManualClock, held: Purgatory, recorder: Recorder
) -> None:
    held.try_complete_else_watch(Gate(0.5), ["a"])
    clock.advance(1)
    held.check_and_complete("a")
    assert sum(recorder.rates(60.9).expired) == sum(recorder.waits(60.9)) == 1
    assert sum(recorder.rates(61.0).expired) == sum(recorder.waits(61.0)) == 0
    assert sum(recorder.lateness(61.0)) == 0


def test_whatever_happens_and_when_rates_and_histograms_are_those_of_a_naive_count(
    clock: ManualClock, held: Purgatory, recorder: Recorder
) -> None:
    choice = random.Random(6)
    ended: list[tuple[float, float]] = []
    for _ in range(3_000):
        clock.advance(choice.choice([0, 0, 0.01, 0.3, 7]))
        began = clock.time()
        gate = held.try_complete_else_watch(Gate(), ["a"])
        clock.advance(choice.expovariate(10))
        gate.force_complete()
        ended.append((clock.time(), clock.time() - began))
    now = clock.time()
    by_second = Counter(int(at) for at, _ in ended)
    last = int(now)
    assert recorder.rates(now).completed == [by_second[at] for at in range(last - WINDOW, last)]
    buckets = Counter(int(waited * 1e6).bit_length() for at, waited in ended if int(at) >= last - WINDOW)
    assert recorder.waits(now) == [buckets[bucket] for bucket in range(BUCKETS)]


@pytest.mark.parametrize(
    ("waited", "bucket"),
    [(0, 0), (1e-6, 1), (1.5e-6, 1), (0.001, 10), (0.0011, 11), (1.0, 20), (3600, 32), (10**8, BUCKETS - 1)],
)
def test_a_bucket_counts_what_took_less_than_so_many_microseconds(
    clock: ManualClock, held: Purgatory, recorder: Recorder, waited: float, bucket: int
) -> None:
    gate = held.try_complete_else_watch(Gate(), ["a"])
    clock.advance(waited)
    gate.force_complete()
    assert recorder.waits(clock.time())[bucket] == 1
    assert waited * 1e6 < 2**bucket or bucket == BUCKETS - 1


def test_lateness_is_that_of_what_expired_at_its_deadline(clock: ManualClock, recorder: Recorder) -> None:
    held = clock.purgatory(tick=0.5, observers=[recorder])
    held.try_complete_else_watch(Gate(0.3), ["a"])
    # No deadline, and one that is not reached.
    held.try_complete_else_watch(Gate(0), ["a"])
    held.try_complete_else_watch(Gate(60), ["a"])
    clock.advance(1)
    for gate in held.operations():
        gate.force_complete()
    assert recorder.lateness(1.0) == [int(bucket == (200_000).bit_length()) for bucket in range(BUCKETS)]


async def test_what_closing_expires_is_not_late(recorder: Recorder) -> None:
    async with Purgatory(observers=[recorder]) as held:
        held.try_complete_else_watch(Gate(60), ["a"])
        now = held.timer.clock()
    assert sum(recorder.lateness(now)) == 0
    assert sum(recorder.waits(now)) == 1


def test_checks_are_counted_with_what_they_tried_and_which_key_tried_the_most(
    clock: ManualClock, held: Purgatory, recorder: Recorder
) -> None:
    for key, many in {"a": 2, "b": 5, "c": 1}.items():
        for _ in range(many):
            held.try_complete_else_watch(Gate(), [key])
    for key in ("a", "b", "c", "nobody watches"):
        held.check_and_complete(key)
    clock.advance(1)
    held.check_and_complete("nobody watches")
    clock.advance(1)
    held.check_and_complete("a")
    rates = recorder.rates(3.0)
    assert rates.checks[-3:] == [4, 1, 1]
    assert rates.tried[-3:] == [8, 0, 2]
    assert recorder.busiest_keys(3.0) == ["b", "a"]


def test_failures_are_kept_in_text_the_latest_first(
    clock: ManualClock, held: Purgatory, recorder: Recorder
) -> None:
    for number in range(KEPT_FAILURES + 2):
        held.try_complete_else_watch(Gate(trying=raising(ValueError(number))), ["a", "b", "c", "d"])
    latest = recorder.failures()[0]
    assert (latest.at, latest.kind, latest.keys) == (0.0, "Gate", ["'a'", "'b'", "'c'"])
    assert [failed.error for failed in recorder.failures()] == [
        f"ValueError({number})" for number in range(KEPT_FAILURES + 1, 1, -1)
    ]
    # Looking does not count: nobody has awaited them.
    with pytest.raises(ExceptionGroup) as told:
        clock.advance(0)
    assert len(told.value.exceptions) == KEPT_FAILURES + 2


def test_no_operation_is_kept_alive(clock: ManualClock, held: Purgatory, recorder: Recorder) -> None:
    gate = Gate(opened=True)
    gone = weakref.ref(gate)
    held.try_complete_else_watch(gate, ["a"])
    del gate
    gc.collect()
    assert gone() is None
    assert sum(recorder.waits(0.0)) == 1


class Key:
    """What a user may have as one."""


@pytest.fixture
def busiest(held: Purgatory) -> weakref.ref[Key]:
    """A key that nobody has but a recorder."""
    key = Key()
    gate = held.try_complete_else_watch(Gate(), [key])
    held.check_and_complete(key)
    gate.cancel()
    return weakref.ref(key)


def test_a_key_is_let_go_after_a_minute_when_somebody_looks(
    recorder: Recorder, busiest: weakref.ref[Key]
) -> None:
    assert recorder.busiest_keys(WINDOW + 0.9) == [busiest()]
    gc.collect()
    assert busiest() is not None
    assert recorder.busiest_keys(WINDOW + 1.0) == []
    gc.collect()
    assert busiest() is None


def test_a_key_is_let_go_after_a_minute_when_something_happens(
    clock: ManualClock, held: Purgatory, busiest: weakref.ref[Key]
) -> None:
    clock.advance(WINDOW + 1.0)
    held.try_complete_else_watch(Gate(opened=True), ["a"])
    gc.collect()
    assert busiest() is None


def test_however_long_it_records_it_keeps_a_minutes_seconds(
    clock: ManualClock, held: Purgatory, recorder: Recorder
) -> None:
    for _ in range(5 * WINDOW):
        held.try_complete_else_watch(Gate(opened=True), ["a"])
        clock.advance(1)
    assert len(recorder._seconds) == WINDOW + 1
    assert recorder.rates(clock.time()).completed == [1] * WINDOW
