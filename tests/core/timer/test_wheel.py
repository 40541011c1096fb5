"""The timing wheel, case by case. `test_wheel_machine` compares it with a sorted list."""

from __future__ import annotations

import gc
from itertools import chain
from typing import Any, cast

import pytest

from purgatory import COMPILED, TimerTask, TimingWheel
from purgatory._core.timer.wheel import Bucket
from tests.core.finalized import Finalized
from tests.core.invariants import check_wheel

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


def test_an_expiration_beyond_all_levels_adds_levels_which_stay() -> None:
    wheel = TimingWheel(20)
    levels = []
    for expiration in (19, 20, 399, 400, 7999, 8000):
        added(wheel, expiration)
        levels.append(wheel.levels)
    assert levels == [1, 2, 2, 3, 3, 4]
    assert wheel.next_expiration() == 19
    wheel.advance(8000)
    assert wheel.levels == 4


def test_the_repr_of_a_wheel_is_one_line() -> None:
    wheel = TimingWheel(20, 5)
    added(wheel, 6, 900)
    assert repr(wheel) == "<TimingWheel now=5 tasks=2 levels=3>"


# Order


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


# A tracer makes objects at each line, so the collector would run where it never runs.
@pytest.mark.usefixtures("untraced")
@pytest.mark.parametrize("postponed", [False, True], ids=["moves down", "moves on"])
@pytest.mark.parametrize("expiration", [None, 37, 90], ids=["removes", "brings forward", "puts off"])
def test_what_a_finalizer_does_to_a_task_while_it_moves_counts(
    postponed: bool, expiration: int | None
) -> None:
    def act() -> None:
        acted.append(task)
        if expiration is None:
            wheel.remove(task)
        else:
            wheel.move(task, expiration)

    threshold = gc.get_threshold()
    times = 0
    for allocations in range(12):
        wheel, kept, task = about_to_move(postponed)
        acted: list[TimerTask] = []
        gc.collect()
        Finalized(act)
        try:
            gc.set_threshold(gc.get_count()[0] + allocations, 10, 10)
            # It makes the slots to which the tasks move.
            due = wheel.advance(36)
        finally:
            gc.set_threshold(*threshold)
        times += len(acted)
        check_wheel(wheel)
        assert due == [kept]
        gc.collect()
        assert acted == [task]
        if expiration is not None:
            assert wheel.advance(expiration - 1) == []
        assert wheel.advance(100) == ([] if expiration is None else [task])
        assert not len(wheel)
    assert times


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
    check_wheel(wheel)


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
        check_wheel(wheel)
        places = [wheel.locate(task) for task in tasks if task not in due and task.scheduled]
        assert wheel.loads(most) == [
            [min(most, places.count((level, slot))) for slot in range(size)] for level in range(wheel.levels)
        ]


def test_the_check_of_its_invariants_finds_a_wrong_count_and_a_task_in_a_wrong_slot() -> None:
    wheel = TimingWheel(20)
    (task,) = added(wheel, 5)
    check_wheel(wheel)
    task._expiration = 4
    with pytest.raises(AssertionError, match="the slot of its expiration"):
        check_wheel(wheel)
    task._expiration = 5
    wheel._tasks = 2
    with pytest.raises(AssertionError):
        check_wheel(wheel)
