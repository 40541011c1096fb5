"""The timing wheel, case by case. `test_wheel_machine` compares it with a sorted list."""

from __future__ import annotations

import ast
import doctest
import gc
import sys
from collections.abc import Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, cast

import pytest

import purgatory
from purgatory import COMPILED, TimerTask, TimingWheel
from purgatory._core.timer.level import Bucket
from tests.core.finalized import Finalized

SIZES = [2, 3, 20, 64, 1000]
FAR = [10**15, 2**70]


class Task(TimerTask):
    __slots__ = ("name",)

    def __init__(self, name: str = "task") -> None:
        super().__init__()
        self.name = name

    def __repr__(self) -> str:
        return self.name


def added(wheel: TimingWheel, *expirations: int) -> list[Task]:
    """Add new tasks to `wheel`, one for each expiration and named after it, and return them."""
    tasks = [Task(str(expiration)) for expiration in expirations]
    for task, expiration in zip(tasks, expirations, strict=True):
        assert wheel.add(task, expiration)
    return tasks


def in_steps(wheel: TimingWheel, now: int, limit: int) -> list[list[TimerTask]]:
    """Advance with that limit until the wheel reaches `now`, and return the result of each call."""
    steps = []
    while wheel.now < now or (wheel.next_expiration() or now + 1) <= now:
        steps.append(wheel.advance(now, limit))
        assert len(steps) < 10_000
    return steps


# The worked cases of the design


@pytest.mark.parametrize(
    ("now", "expiration", "location"),
    [
        pytest.param(0, 2, (0, 2), id="now 0, expiration 2: level 0, slot 2"),
        pytest.param(2, 10, (0, 10), id="now 2, expiration 10: level 0, slot 10"),
        pytest.param(2, 21, (0, 1), id="now 2, expiration 21: level 0, slot 1, which has passed"),
        pytest.param(0, 350, (1, 17), id="now 0, expiration 350: level 1, slot 17"),
        pytest.param(0, 450, (2, 1), id="now 0, expiration 450: level 2, slot 1"),
        pytest.param(0, 446, (2, 1), id="now 0, expiration 446: level 2, slot 1"),
        pytest.param(0, 455, (2, 1), id="now 0, expiration 455: level 2, slot 1"),
        pytest.param(0, 473, (2, 1), id="now 0, expiration 473: level 2, slot 1"),
    ],
)
def test_worked_case_of_a_wheel_of_20_slots(now: int, expiration: int, location: tuple[int, int]) -> None:
    wheel = TimingWheel(20)
    wheel.advance(now)
    (task,) = added(wheel, expiration)
    assert wheel.locate(task) == location
    assert wheel.advance(expiration - 1) == []
    assert wheel.advance(expiration) == [task]


def test_worked_case_a_passed_slot_is_used_again_beside_slots_still_ahead() -> None:
    wheel = TimingWheel(20)
    (two,) = added(wheel, 2)
    assert wheel.advance(2) == [two]
    ten, twenty_one = added(wheel, 10, 21)
    assert [wheel.locate(task) for task in (ten, twenty_one)] == [(0, 10), (0, 1)]
    assert wheel.advance(10) == [ten]
    assert wheel.next_expiration() == 21
    assert wheel.advance(21) == [twenty_one]


def test_worked_case_tasks_of_one_slot_of_level_2_move_down_and_each_fires_at_its_own_tick() -> None:
    wheel = TimingWheel(20)
    a450, a446, a455, a473 = tasks = added(wheel, 450, 446, 455, 473)
    assert {wheel.locate(task) for task in tasks} == {(2, 1)}
    assert wheel.next_expiration() == 400

    assert wheel.advance(400) == []
    assert [wheel.locate(task) for task in tasks] == [(1, 2), (1, 2), (1, 2), (1, 3)]
    assert wheel.next_expiration() == 440

    assert wheel.advance(440) == []
    assert [wheel.locate(task) for task in tasks] == [(0, 10), (0, 6), (0, 15), (1, 3)]
    fired = {}
    for now in range(441, 480):
        for task in wheel.advance(now):
            fired[task] = now
    assert fired == {a446: 446, a450: 450, a455: 455, a473: 473}


def test_one_long_jump_returns_the_worked_case_of_level_2_in_order_of_expiration() -> None:
    wheel = TimingWheel(20)
    a450, a446, a455, a473 = added(wheel, 450, 446, 455, 473)
    assert wheel.advance(10_000) == [a446, a450, a455, a473]
    assert wheel.now == 10_000


# Adding, removing, inspecting


def test_a_new_wheel_is_empty_has_one_level_and_starts_at_tick_zero() -> None:
    wheel = TimingWheel(20)
    assert (len(wheel), wheel.levels, wheel.now, wheel.next_expiration()) == (0, 1, 0, None)


@pytest.mark.parametrize("start", [-1001, -1, 1, 1234, 2**70])
def test_a_wheel_can_start_at_any_tick(start: int) -> None:
    wheel = TimingWheel(20, start)
    assert wheel.now == start
    near, far = added(wheel, start + 1, start + 1000)
    assert wheel.locate(near) == (0, (start + 1) % 20)
    assert not wheel.add(Task(), start)
    assert wheel.advance(start + 1) == [near]
    assert wheel.advance(start + 999) == []
    assert wheel.advance(start + 1000) == [far]


@pytest.mark.parametrize("expiration", [10, 9, 0, -5])
def test_a_task_that_is_due_already_is_not_stored(expiration: int) -> None:
    wheel = TimingWheel(20, 10)
    task = Task()
    assert wheel.add(task, expiration) is False
    assert not task.scheduled
    assert (len(wheel), wheel.next_expiration()) == (0, None)
    assert wheel.add(task, 11) is True


def test_the_length_of_a_wheel_is_the_number_of_stored_tasks() -> None:
    wheel = TimingWheel(20)
    first, *_ = added(wheel, 5, 5, 900)
    assert len(wheel) == 3
    wheel.remove(first)
    assert len(wheel) == 2
    wheel.advance(5)
    assert len(wheel) == 1
    wheel.advance(900)
    assert len(wheel) == 0


def test_a_removed_task_is_never_returned_and_can_be_added_again() -> None:
    wheel = TimingWheel(20)
    gone, stays = added(wheel, 30, 30)
    assert wheel.remove(gone) is True
    assert not gone.scheduled
    assert wheel.remove(gone) is False
    assert wheel.add(gone, 40)
    assert wheel.advance(39) == [stays]
    assert wheel.advance(40) == [gone]


@pytest.mark.parametrize("position", [0, 1, 2])
def test_a_task_can_be_removed_from_anywhere_in_its_slot(position: int) -> None:
    wheel = TimingWheel(20)
    tasks = added(wheel, 7, 7, 7)
    removed = tasks.pop(position)
    assert wheel.remove(removed)
    assert wheel.advance(7) == tasks


def test_an_expiration_beyond_all_levels_adds_levels_which_stay() -> None:
    wheel = TimingWheel(20)
    levels = []
    for expiration in (19, 20, 399, 400, 7999, 8000):
        added(wheel, expiration)
        levels.append(wheel.levels)
    assert levels == [1, 2, 2, 3, 3, 4]
    wheel.advance(8000)
    assert wheel.levels == 4


def test_in_the_middle_of_a_slot_the_slot_of_the_present_is_not_used_again() -> None:
    # 409 is less than 400 ticks after 10, but its slot of level 1 is the one in which 10 itself lies.
    wheel = TimingWheel(20, 10)
    before, beyond = added(wheel, 399, 409)
    assert wheel.locate(before) == (1, 19)
    assert wheel.locate(beyond) == (2, 1)
    assert wheel.advance(408) == [before]
    assert wheel.advance(409) == [beyond]


def test_next_expiration_is_the_start_of_the_next_occupied_slot_also_after_removals() -> None:
    wheel = TimingWheel(20)
    near, middle, far = added(wheel, 7, 25, 450)
    assert wheel.next_expiration() == 7
    wheel.remove(near)
    assert wheel.next_expiration() == 20
    wheel.remove(middle)
    assert wheel.next_expiration() == 400
    wheel.remove(far)
    assert wheel.next_expiration() is None


def test_a_slot_counts_as_occupied_until_its_last_task_has_left() -> None:
    wheel = TimingWheel(20)
    first, second, later = added(wheel, 7, 7, 9)
    wheel.remove(first)
    assert wheel.next_expiration() == 7
    wheel.remove(second)
    assert wheel.next_expiration() == 9
    assert wheel.advance(9) == [later]


def test_advancing_to_the_present_is_harmless() -> None:
    wheel = TimingWheel(20, 3)
    (task,) = added(wheel, 4)
    assert wheel.advance(3) == []
    assert wheel.advance(4) == [task]
    assert wheel.advance(4) == []


def test_the_repr_of_a_wheel_is_one_line() -> None:
    wheel = TimingWheel(20, 5)
    added(wheel, 6, 900)
    assert repr(wheel) == "<TimingWheel now=5 tasks=2 levels=3>"


# Order


@pytest.mark.parametrize("size", SIZES)
def test_tasks_are_returned_by_expiration_and_first_in_first_out_among_equals(size: int) -> None:
    wheel = TimingWheel(size)
    expirations = [8, 700, 3, 8, 64, 3, 65, 700, 8, 1000, 64, 7, 1001]
    tasks = added(wheel, *expirations)
    expected = [task for _, _, task in sorted(zip(expirations, range(13), tasks, strict=True))]
    assert wheel.advance(2000) == expected


@pytest.mark.parametrize("limit", [None, 1, 2, 3])
def test_of_equal_expirations_an_earlier_task_on_a_higher_level_goes_first(
    limit: int | None,
) -> None:
    wheel = TimingWheel(20)
    (first,) = added(wheel, 405)
    wheel.advance(100)
    (second,) = added(wheel, 405)
    wheel.advance(390)
    (third,) = added(wheel, 405)
    assert [wheel.locate(task)[0] for task in (first, second, third)] == [2, 1, 0]
    if limit is None:
        assert wheel.advance(405) == [first, second, third]
    else:
        assert [*chain(*in_steps(wheel, 405, limit))] == [first, second, third]


@pytest.mark.parametrize("limit", [None, 1, 2, 3])
def test_slots_of_all_levels_that_start_at_one_instant_are_taken_together(limit: int | None) -> None:
    wheel = TimingWheel(20)
    first = added(wheel, 400, 401, 400, 425)
    wheel.advance(150)
    second = added(wheel, 400, 401, 400, 425)
    wheel.advance(390)
    third = added(wheel, 400, 401, 400, 425)
    assert [wheel.locate(group[0])[0] for group in (first, second, third)] == [2, 1, 0]
    groups = (first, second, third)
    expected = [group[i] for group in groups for i in (0, 2)]
    expected += [group[1] for group in groups]
    expected += [group[3] for group in groups]
    if limit is None:
        assert wheel.advance(1000) == expected
    else:
        assert [*chain(*in_steps(wheel, 1000, limit))] == expected


# Partial advances


def test_a_move_to_a_lower_level_counts_towards_the_limit_like_a_returned_task() -> None:
    wheel = TimingWheel(20)
    a450, a446, a455, a473 = added(wheel, 450, 446, 455, 473)
    steps = in_steps(wheel, 500, 1)
    # Each of the four tasks moves from level 2 to level 1, then to level 0, and is returned.
    assert len([step for step in steps if step]) == 4
    assert len(steps) in (12, 13)
    assert [*chain(*steps)] == [a446, a450, a455, a473]
    assert wheel.now == 500


@pytest.mark.parametrize("limit", [1, 2, 3, 5, 11, 12, 13, 100])
def test_partial_advances_together_return_what_one_call_returns(limit: int) -> None:
    expirations = [450, 446, 20, 455, 19, 473, 450, 20, 8000, 1]
    whole, parted = TimingWheel(20), TimingWheel(20)
    added(whole, *expirations)
    added(parted, *expirations)
    steps = in_steps(parted, 8000, limit)
    assert all(len(step) <= limit for step in steps)
    assert [str(task) for step in steps for task in step] == [str(task) for task in whole.advance(8000)]
    assert (parted.now, len(parted)) == (8000, 0)


def test_a_partial_advance_stops_at_the_tick_whose_tasks_are_left() -> None:
    wheel = TimingWheel(20)
    first, second, later = added(wheel, 5, 5, 9)
    assert wheel.advance(12, 1) == [first]
    assert (wheel.now, wheel.next_expiration(), len(wheel)) == (5, 5, 2)
    assert wheel.advance(12, 1) == [second]
    assert (wheel.now, wheel.next_expiration()) == (5, 9)
    assert wheel.advance(12, 2) == [later]
    assert (wheel.now, wheel.next_expiration()) == (12, None)


def test_tasks_can_be_added_and_removed_between_partial_advances() -> None:
    wheel = TimingWheel(20)
    a, b, c, d = added(wheel, 5, 5, 5, 25)
    assert wheel.advance(30, 1) == [a]
    # The wheel is still at tick 5: a task due by then is refused, a task due before 30 is not.
    assert not wheel.add(a, 5)
    assert wheel.add(a, 25)
    assert wheel.remove(b)
    assert not wheel.add(b, 5)
    (e,) = added(wheel, 6)
    assert wheel.advance(30, 2) == [c, e]
    # d was added before a was added again, although on a higher level.
    assert wheel.advance(30) == [d, a]


def test_the_order_among_equals_is_kept_when_a_slot_is_half_moved_down() -> None:
    wheel = TimingWheel(20)
    tasks = added(wheel, 45, 45, 45, 45)
    assert wheel.advance(45, 2) == []
    assert sorted(wheel.locate(task)[0] for task in tasks) == [0, 0, 1, 1]
    tasks += added(wheel, 45)
    assert wheel.remove(tasks.pop(1))
    assert wheel.advance(45, 1) == []
    tasks += added(wheel, 45)
    assert wheel.remove(tasks.pop(2))
    assert wheel.advance(45) == tasks


@pytest.mark.parametrize("limit", [1, 3, 5, None])
def test_tasks_that_move_down_side_by_side_keep_their_order_and_their_slots(limit: int | None) -> None:
    wheel = TimingWheel(4)
    early, late = added(wheel, 32, 33, 33, 36, 37, 36, 41, 33), added(wheel, 46, 32, 38)
    postponed = added(wheel, 34)[0]
    wheel.move(postponed, 300)
    wheel.advance(28)
    behind = added(wheel, 33, 36)
    expected = sorted([*early, *late, *behind], key=lambda task: int(task.name))
    steps = in_steps(wheel, 60, limit) if limit else [wheel.advance(60)]
    assert list(chain.from_iterable(steps)) == expected
    wheel._check()
    assert wheel.advance(300) == [postponed]


@pytest.fixture
def untraced() -> Iterator[None]:
    """No tracer, which would make objects at each line: so the collector would run where it never runs."""
    tracer = sys.gettrace()
    sys.settrace(None)
    yield
    sys.settrace(tracer)


@pytest.mark.usefixtures("untraced")
@pytest.mark.parametrize("postponed", [False, True], ids=["moves down", "moves on"])
def test_a_task_that_a_finalizer_removes_while_it_moves_stays_removed(postponed: bool) -> None:
    threshold = gc.get_threshold()
    removed = 0
    for allocations in range(12):
        wheel, kept, task = about_to_move(postponed)
        gc.collect()
        Finalized(partial(wheel.remove, task))
        try:
            gc.set_threshold(gc.get_count()[0] + allocations, 10, 10)
            # It makes the slots to which the tasks move.
            due = wheel.advance(36)
        finally:
            gc.set_threshold(*threshold)
        removed += not task.scheduled
        wheel._check()
        assert due == [kept]
        gc.collect()
        assert wheel.advance(100) == []
        assert not len(wheel)
    assert removed


@pytest.mark.skipif(COMPILED, reason="compiled code makes its slots without looking up their class")
@pytest.mark.parametrize("postponed", [False, True], ids=["moves down", "moves on"])
def test_a_task_that_is_removed_while_its_new_slot_is_made_stays_removed(
    postponed: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel, kept, task = about_to_move(postponed)

    def make(*arguments: Any) -> Bucket:
        wheel.remove(task)
        return Bucket(*arguments)

    monkeypatch.setattr("purgatory._core.timer.wheel.Bucket", make)
    assert wheel.advance(36) == [kept]
    assert not task.scheduled
    wheel._check()
    assert wheel.advance(100) == []


def about_to_move(postponed: bool) -> tuple[TimingWheel, TimerTask, TimerTask]:
    """A wheel whose second task is about to get a slot on a lower level, or on the level that it is on."""
    wheel = TimingWheel(4)
    kept, task = added(wheel, 33, 3 if postponed else 38)
    if postponed:
        wheel.move(task, 50)
    return wheel, kept, task


def test_limit_zero_advances_until_a_task_would_have_to_move() -> None:
    wheel = TimingWheel(20)
    (task,) = added(wheel, 450)
    assert wheel.advance(399, 0) == []
    assert (wheel.now, wheel.locate(task)) == (399, (2, 1))
    assert wheel.advance(1000, 0) == []
    assert (wheel.now, wheel.locate(task)) == (400, (2, 1))
    assert wheel.advance(1000, 0) == []
    assert (wheel.now, wheel.next_expiration()) == (400, 400)
    assert wheel.advance(1000) == [task]


# Giving a task another expiration


def test_a_task_with_a_later_expiration_stays_in_its_slot_until_that_starts() -> None:
    wheel = TimingWheel(20)
    low, high = added(wheel, 5, 450)
    assert wheel.move(low, 30)
    assert wheel.move(high, 460)
    assert (wheel.locate(low), wheel.locate(high), wheel.next_expiration()) == ((0, 5), (2, 1), 5)
    assert wheel.advance(5) == []
    assert (wheel.locate(low), wheel.next_expiration()) == ((1, 1), 20)
    assert wheel.advance(29) == []
    assert wheel.advance(30) == [low]
    assert wheel.advance(459) == []
    assert wheel.advance(460) == [high]


def test_a_task_with_a_later_expiration_can_move_to_a_higher_level_that_has_yet_to_be_added() -> None:
    wheel = TimingWheel(2)
    near, far = added(wheel, 1, 2)
    assert wheel.move(near, 10**6)
    assert wheel.move(far, 10**6)
    assert wheel.advance(10**6 - 1) == []
    assert set(wheel.advance(10**6)) == {near, far}


@pytest.mark.parametrize("size", [20, 100])
def test_a_task_that_moves_to_an_earlier_time_goes_behind_the_tasks_there(size: int) -> None:
    wheel = TimingWheel(size)
    there, moved = added(wheel, 7, 15)

    assert wheel.move(moved, 7)

    wheel._check()
    assert len(wheel) == 2
    assert wheel.advance(15) == [there, moved]


@pytest.mark.parametrize("size", [20, 100])
def test_a_task_that_moves_to_a_free_slot_leaves_its_own_free(size: int) -> None:
    wheel = TimingWheel(size)
    [task] = added(wheel, 15)

    assert wheel.move(task, 7)

    wheel._check()
    assert wheel.next_expiration() == 7
    assert wheel.advance(7) == [task]
    assert wheel.next_expiration() is None


def test_a_task_that_moves_to_a_time_that_is_over_is_taken_out() -> None:
    wheel = TimingWheel(20, start=5)
    [task] = added(wheel, 15)

    assert not wheel.move(task, 5)

    assert not task.scheduled
    assert len(wheel) == 0


def test_a_task_that_is_in_no_wheel_is_added_where_it_moves_to() -> None:
    wheel = TimingWheel(20)
    task = Task()

    assert wheel.move(task, 7)

    assert wheel.advance(7) == [task]


def test_a_task_of_another_wheel_does_not_move_here() -> None:
    wheel, other = TimingWheel(20), TimingWheel(20)
    [task] = added(other, 7)

    with pytest.raises(RuntimeError, match="is in a timing wheel already"):
        wheel.move(task, 3)

    assert other.advance(7) == [task]


def test_a_task_with_an_earlier_expiration_moves_at_once() -> None:
    wheel = TimingWheel(20)
    (task,) = added(wheel, 30)
    assert wheel.move(task, 50)
    assert wheel.move(task, 7)
    assert (wheel.locate(task), wheel.next_expiration()) == ((0, 7), 7)
    assert wheel.advance(7) == [task]


def test_moving_a_postponed_task_on_counts_for_the_limit_of_an_advance() -> None:
    wheel = TimingWheel(20)
    first, second, third = added(wheel, 5, 5, 5)
    assert wheel.move(first, 6)
    assert wheel.advance(9, 1) == []
    assert (wheel.now, wheel.locate(first)) == (5, (0, 6))
    assert wheel.advance(9, 2) == [second, third]
    assert wheel.advance(9, 1) == [first]


def test_postponed_tasks_do_not_change_the_order_of_the_others() -> None:
    wheel = TimingWheel(20)
    tasks = added(wheel, *[45] * 4, *[2, 30, 41] * 2, 45)
    for task in tasks[4:10]:
        assert wheel.move(task, 45)
    tasks += added(wheel, 45)
    due = wheel.advance(45)
    assert len(due) == 12
    assert [task for task in due if str(task) == "45"] == [*tasks[:4], *tasks[10:]]


def test_limit_zero_returns_no_due_task() -> None:
    wheel = TimingWheel(20)
    (task,) = added(wheel, 5)
    assert wheel.advance(5, 0) == []
    assert (wheel.now, len(wheel), task.scheduled) == (5, 1, True)
    assert wheel.advance(5, 1) == [task]


def test_limit_zero_advances_an_empty_wheel_to_the_end() -> None:
    wheel = TimingWheel(20)
    assert wheel.advance(10**15, 0) == []
    assert wheel.now == 10**15


def test_the_single_steps_of_an_advance_return_the_same_tasks() -> None:
    wheel = TimingWheel(20)
    late, early, equal = added(wheel, 450, 446, 450)
    assert not wheel.reach(399)
    assert wheel.now == 399
    assert wheel.reach(500)
    assert (wheel.now, wheel.pop()) == (400, None)
    assert (wheel.sink(2), wheel.sink(0), wheel.sink(2), wheel.sink(2)) == (2, 0, 1, 0)
    assert wheel.reach(500)
    assert (wheel.now, wheel.sink(9)) == (440, 3)
    assert wheel.reach(500)
    assert (wheel.now, wheel.sink(9), wheel.pop(), wheel.pop()) == (446, 0, early, None)
    assert wheel.reach(500)
    assert (wheel.now, wheel.pop()) == (450, late)
    # The wheel stays at this tick until the slot is empty.
    assert wheel.reach(500)
    assert (wheel.now, wheel.pop(), wheel.pop()) == (450, equal, None)
    assert not wheel.reach(500)
    assert (wheel.now, len(wheel)) == (500, 0)


def test_a_step_to_the_past_does_not_change_the_time() -> None:
    wheel = TimingWheel(20, 100)
    (task,) = added(wheel, 119)
    assert not wheel.reach(90)
    assert (wheel.now, wheel.next_expiration(), wheel.locate(task)) == (100, 119, (0, 19))


# Time jumps


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("expiration", FAR)
def test_a_task_is_returned_at_its_own_tick_whatever_its_distance(size: int, expiration: int) -> None:
    wheel = TimingWheel(size)
    (task,) = added(wheel, expiration)
    assert wheel.levels == wheel.locate(task)[0] + 1
    assert size ** (wheel.levels - 1) <= expiration < size**wheel.levels
    assert wheel.advance(expiration - 1) == []
    assert wheel.next_expiration() == expiration
    assert wheel.advance(expiration) == [task]


@pytest.mark.parametrize("size", SIZES)
def test_empty_slots_are_never_visited(size: int) -> None:
    wheel = TimingWheel(size)
    expirations = [10**12 - 1, 123_456_789_012, 7]
    tasks = added(wheel, *expirations)
    starts = {
        expiration - expiration % size**level for expiration in expirations for level in range(wheel.levels)
    }
    visited = set()
    calls = 0
    returned: list[TimerTask] = []
    while len(wheel):
        returned += wheel.advance(10**12, 1)
        visited.add(wheel.now)
        calls += 1
        # Each call moves or returns one task, and a task sinks at most once from each level.
        assert calls <= 3 * wheel.levels
    assert returned == tasks[::-1]
    # Time stops only where the slot of a task starts.
    assert visited <= starts


@pytest.mark.parametrize("size", SIZES)
def test_an_empty_wheel_jumps_any_distance_at_once(size: int) -> None:
    wheel = TimingWheel(size)
    assert wheel.advance(2**70) == []
    assert wheel.now == 2**70
    (task,) = added(wheel, 2**70 + 1)
    assert wheel.locate(task) == (0, (2**70 + 1) % size)


# Bad input


@pytest.mark.parametrize("size", [1, 0, -20, True])
def test_a_wheel_of_fewer_than_two_slots_is_refused(size: int) -> None:
    with pytest.raises(ValueError, match="wheel_size must be an integer of at least 2"):
        TimingWheel(size)


@pytest.mark.parametrize("size", [2.5, 20.0, "20", None])
def test_a_number_of_slots_that_is_not_an_integer_is_refused(size: object) -> None:
    # The compiled build checks the type before the first line runs, and words the message differently.
    with pytest.raises((ValueError, TypeError), match=r"wheel_size must be an integer|int object expected"):
        TimingWheel(cast(Any, size))


@pytest.mark.parametrize("expiration", [2.5, 700.0, float("inf"), float("nan"), "7", None])
def test_an_expiration_that_is_not_an_integer_is_refused_and_nothing_is_stored(expiration: object) -> None:
    wheel = TimingWheel(20)
    task = Task()
    with pytest.raises(TypeError):
        wheel.add(task, cast(Any, expiration))
    assert (len(wheel), wheel.next_expiration(), task.scheduled) == (0, None, False)
    assert wheel.add(task, 7)


def test_time_cannot_go_back() -> None:
    wheel = TimingWheel(20, 10)
    (task,) = added(wheel, 12)
    with pytest.raises(ValueError, match="time cannot go back from tick 10 to 9"):
        wheel.advance(9)
    assert wheel.now == 10
    assert wheel.advance(12) == [task]


@pytest.mark.parametrize("now", [12.0, float("inf"), float("nan"), "12", None])
def test_a_time_that_is_not_an_integer_is_refused_and_no_time_passes(now: object) -> None:
    wheel = TimingWheel(20, 10)
    (task,) = added(wheel, 12)
    with pytest.raises(TypeError, match=r"whole number of ticks|int object expected"):
        wheel.advance(cast(Any, now))
    assert (wheel.now, task.scheduled) == (10, True)


def test_a_negative_limit_is_refused_and_no_time_passes() -> None:
    wheel = TimingWheel(20)
    (task,) = added(wheel, 2)
    with pytest.raises(ValueError, match="limit must not be negative, got -1"):
        wheel.advance(5, -1)
    assert (wheel.now, wheel.locate(task)) == (0, (0, 2))


def test_adding_a_task_twice_is_refused_and_it_stays_where_it_was() -> None:
    wheel = TimingWheel(20)
    (task,) = added(wheel, 7)
    for expiration in (7, 300, 0):
        with pytest.raises(RuntimeError, match="is in a timing wheel already: remove it first"):
            wheel.add(task, expiration)
    assert (len(wheel), wheel.levels, wheel.locate(task)) == (1, 1, (0, 7))
    assert wheel.advance(300) == [task]


def test_adding_a_task_of_another_wheel_is_refused_and_it_stays_there() -> None:
    here, there = TimingWheel(20), TimingWheel(20)
    (task,) = added(there, 7)
    with pytest.raises(RuntimeError, match="is in a timing wheel already"):
        here.add(task, 9)
    assert (len(here), len(there), there.locate(task)) == (0, 1, (0, 7))
    assert there.advance(7) == [task]
    assert here.add(task, 9)


def test_a_task_that_is_not_stored_cannot_be_located() -> None:
    wheel, other = TimingWheel(20), TimingWheel(20)
    never = Task("never")
    removed, elsewhere, expired = added(wheel, 30, 7, 1)[0], added(other, 7)[0], Task("expired")
    wheel.remove(removed)
    wheel.add(expired, 1)
    wheel.advance(1)
    for task in (never, removed, elsewhere, expired):
        with pytest.raises(ValueError, match=rf"{task} is not in this timing wheel"):
            wheel.locate(task)


def test_removing_a_task_that_is_not_stored_changes_nothing() -> None:
    wheel, other = TimingWheel(20), TimingWheel(20)
    (here,) = added(wheel, 7)
    (there,) = added(other, 7)
    assert wheel.remove(Task()) is False
    assert wheel.remove(there) is False
    assert (len(wheel), len(other)) == (1, 1)
    assert wheel.advance(7) == [here]
    assert wheel.remove(here) is False
    assert (len(wheel), len(other)) == (0, 1)
    assert other.advance(7) == [there]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("most", [1, 3, 1_000])
def test_the_loads_are_the_numbers_of_tasks_per_slot_up_to_a_maximum(size: int, most: int) -> None:
    wheel = TimingWheel(size)
    tasks = added(wheel, *[1 + number * number % 977 for number in range(300)], 10**6)
    for now in (0, 1, 40, 500, 10**6):
        due = wheel.advance(now)
        wheel._check()
        places = [wheel.locate(task) for task in tasks if task not in due and task.scheduled]
        assert wheel.loads(most) == [
            [min(most, places.count((level, slot))) for slot in range(size)] for level in range(wheel.levels)
        ]


def test_the_check_of_its_invariants_finds_a_wrong_count_and_a_task_in_a_wrong_slot() -> None:
    wheel = TimingWheel(20)
    (task,) = added(wheel, 5)
    wheel._check()
    task._expiration = 4
    with pytest.raises(AssertionError, match="the slot of its expiration"):
        wheel._check()
    task._expiration = 5
    wheel._tasks = 2
    with pytest.raises(AssertionError):
        wheel._check()


def test_the_worked_example_in_its_docstring_holds() -> None:
    parser = doctest.DocTestParser()
    # Compiled classes have no docstrings, so the example is read from the source.
    source = Path(purgatory.__file__).with_name("_core") / "timer" / "wheel.py"
    documentation = ast.get_docstring(
        next(
            node
            for node in ast.parse(source.read_text()).body
            if isinstance(node, ast.ClassDef) and node.name == "TimingWheel"
        )
    )
    names = {"TimerTask": TimerTask, "TimingWheel": TimingWheel}
    example = parser.get_doctest(documentation or "", names, "TimingWheel", str(source), 0)
    assert len(example.examples) > 5
    assert doctest.DocTestRunner().run(example).failed == 0
