"""The wheel as it is drawn."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from purgatory import Purgatory
from purgatory.testing import ManualClock
from purgatory.web.dashboard.wheel import FIRST, VISITS, draw
from tests.operations import Gate


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


def filled(clock: ManualClock, timeouts: list[float], wheel_size: int = 32) -> Purgatory:
    held = clock.purgatory(wheel_size=wheel_size)
    for timeout in timeouts:
        held.try_complete_else_watch(Gate(timeout), ["key"])
    return held


def drawn(held: Purgatory, clock: ManualClock) -> Counter[tuple[int, int]]:
    """How many are drawn in which slot of which level."""
    levels = draw(held.timer, clock.time()).levels
    return Counter({(level, slot): load for level, slots in enumerate(levels) for slot, load in slots})


def located(held: Purgatory) -> Counter[tuple[int, int]]:
    return Counter(held.timer.wheel.locate(gate) for gate in held.operations() if gate.scheduled)


def test_an_empty_wheel_has_a_level_and_nothing_in_it(clock: ManualClock) -> None:
    picture = draw(clock.purgatory().timer, 0.5)
    assert (picture.tasks, picture.levels, picture.next_slot, picture.wakeup) == (0, [[]], None, None)
    assert (picture.tick, picture.now, picture.size) == (0.001, 500.0, 32)


@pytest.mark.parametrize("wheel_size", [2, 20, 32, 512])
def test_every_operation_is_drawn_where_it_is_at_any_time(clock: ManualClock, wheel_size: int) -> None:
    choice = random.Random(wheel_size)
    held = filled(clock, [choice.expovariate(0.2) for _ in range(300)] + [float("inf")], wheel_size)
    for _ in range(20):
        assert drawn(held, clock) == located(held)
        clock.advance(choice.random())


def test_the_next_wakeup_is_counted_from_now_and_the_next_slot_in_ticks(clock: ManualClock) -> None:
    clock.advance(100)
    held = filled(clock, [0.010, 5.0])
    clock.advance(0.004)
    picture = draw(held.timer, clock.time())
    assert picture.next_slot == 10
    assert picture.now == pytest.approx(4.0)
    assert picture.wakeup == pytest.approx(0.006)


def test_while_what_is_overdue_expires_the_wheel_is_where_that_was_due(clock: ManualClock) -> None:
    pictures = []
    held = filled(clock, [])
    # The hook of the first is slow.
    first = Gate(0.021, expiring=lambda: pictures.append(draw(held.timer, 0.0743)))
    for gate in (first, Gate(0.021), Gate(0.041)):
        held.try_complete_else_watch(gate, ["key"])
    assert draw(held.timer, clock.time()).reached == 0
    clock.advance(1)
    (picture,) = pictures
    assert picture.now == pytest.approx(74.3)
    assert (picture.reached, picture.next_slot, picture.wakeup) == (21, 21, None)
    assert picture.levels == [[(21, 1)], [(1, 1)]]


def test_fuller_slots_are_counted_as_far_as_there_is_time(clock: ManualClock) -> None:
    # Two slots that are far too full, and one that is not.
    held = filled(clock, [0.010] * VISITS + [0.020] * VISITS + [0.030] * (FIRST + 1))
    picture = draw(held.timer, clock.time())
    assert picture.most == VISITS // 3
    assert picture.levels == [[(10, VISITS // 3), (20, VISITS // 3), (30, FIRST + 1)]]


def test_the_only_slot_not_counted_to_its_end_has_all_the_rest(clock: ManualClock) -> None:
    held = filled(clock, [0.010] * (2 * VISITS) + [0.020] * FIRST + [0.030])
    assert drawn(held, clock) == {(0, 10): 2 * VISITS, (0, 20): FIRST, (0, 30): 1} == located(held)
