"""The picture of the timing wheel."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from purgatory import Purgatory
from purgatory.testing import ManualClock
from purgatory.web.dashboard.wheel import FIRST_COUNT, SECOND_COUNT, picture_wheel
from tests.operations import Gate


def filled(clock: ManualClock, timeouts: list[float], wheel_size: int = 60) -> Purgatory:
    purgatory = clock.purgatory(wheel_size=wheel_size)
    for timeout in timeouts:
        purgatory.try_complete_else_watch(Gate(timeout), ["key"])
    return purgatory


def pictured(purgatory: Purgatory, clock: ManualClock) -> Counter[tuple[int, int]]:
    """The number of operations in the picture, by level and slot."""
    levels = picture_wheel(purgatory.timer, clock.time()).levels
    return Counter({(level, slot): load for level, slots in enumerate(levels) for slot, load in slots})


def located(purgatory: Purgatory) -> Counter[tuple[int, int]]:
    return Counter(purgatory.timer.wheel.locate(gate) for gate in purgatory.operations() if gate.scheduled)


def test_an_empty_wheel_has_one_empty_level(clock: ManualClock) -> None:
    picture = picture_wheel(clock.purgatory().timer, 0.5)
    assert (picture.tasks, picture.levels, picture.next_slot, picture.wakeup) == (0, [[]], None, None)
    assert (picture.tick, picture.now, picture.size) == (0.001, 500.0, 60)


@pytest.mark.parametrize("wheel_size", [2, 20, 60, 512])
def test_the_picture_always_shows_each_operation_in_its_slot(clock: ManualClock, wheel_size: int) -> None:
    choice = random.Random(wheel_size)
    purgatory = filled(clock, [choice.expovariate(0.2) for _ in range(300)] + [float("inf")], wheel_size)
    for _ in range(20):
        assert pictured(purgatory, clock) == located(purgatory)
        clock.advance(choice.random())


def test_the_next_wakeup_is_counted_from_now_and_the_next_slot_in_ticks(clock: ManualClock) -> None:
    clock.advance(100)
    purgatory = filled(clock, [0.010, 5.0])
    clock.advance(0.004)
    picture = picture_wheel(purgatory.timer, clock.time())
    assert picture.next_slot == 10
    assert picture.now == pytest.approx(4.0)
    assert picture.wakeup == pytest.approx(0.006)


def test_while_what_is_overdue_expires_the_wheel_is_where_that_was_due(clock: ManualClock) -> None:
    pictures = []
    purgatory = filled(clock, [], wheel_size=32)
    # The hook of the first is slow.
    first = Gate(0.021, expiring=lambda: pictures.append(picture_wheel(purgatory.timer, 0.0743)))
    for gate in (first, Gate(0.021), Gate(0.041)):
        purgatory.try_complete_else_watch(gate, ["key"])
    assert picture_wheel(purgatory.timer, clock.time()).wheel_now == 0
    clock.advance(1)
    (picture,) = pictures
    assert picture.now == pytest.approx(74.3)
    assert (picture.wheel_now, picture.next_slot, picture.wakeup) == (21, 21, None)
    assert picture.levels == [[(21, 1)], [(1, 1)]]


def test_full_slots_are_counted_up_to_a_limit(clock: ManualClock) -> None:
    # Two slots exceed the limit, and one does not.
    purgatory = filled(clock, [0.010] * SECOND_COUNT + [0.020] * SECOND_COUNT + [0.030] * (FIRST_COUNT + 1))
    picture = picture_wheel(purgatory.timer, clock.time())
    assert picture.count_limit == SECOND_COUNT // 3
    assert picture.levels == [[(10, SECOND_COUNT // 3), (20, SECOND_COUNT // 3), (30, FIRST_COUNT + 1)]]


def test_the_only_slot_that_is_not_counted_to_its_end_holds_the_rest(clock: ManualClock) -> None:
    purgatory = filled(clock, [0.010] * (2 * SECOND_COUNT) + [0.020] * FIRST_COUNT + [0.030])
    assert (
        pictured(purgatory, clock)
        == {(0, 10): 2 * SECOND_COUNT, (0, 20): FIRST_COUNT, (0, 30): 1}
        == located(purgatory)
    )
