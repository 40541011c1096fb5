"""The timing wheel is compared with a sorted list over random sequences of calls."""

from __future__ import annotations

from typing import TypeAlias, cast

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from purgatory import TimerTask, TimingWheel
from tests.core.invariants import check_wheel

SIZES = [2, 3, 5, 20, 64]

# Kinds of instants, resolved when the wheel and its tasks are known. Numbers drawn at random hardly ever meet
# the edge of a slot or each other, and that is where the order can go wrong.
Choice: TypeAlias = tuple[str, int, int]
CHOICES: st.SearchStrategy[Choice] = st.one_of(
    # A few ticks from now.
    st.tuples(st.just("ahead"), st.integers(0, 30), st.just(0)),
    # At the start of a slot of some level, or next to it.
    st.tuples(st.just("edge of level 1"), st.integers(1, 6), st.integers(-1, 1)),
    st.tuples(st.just("edge of level 2"), st.integers(1, 3), st.integers(-1, 1)),
    st.tuples(st.just("edge of level 3"), st.integers(1, 2), st.integers(-1, 1)),
    # At the expiration of a stored task, or next to it.
    st.tuples(st.just("task"), st.integers(0, 50), st.sampled_from([0, 0, 0, -1, 1])),
)


class Task(TimerTask):
    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number

    def __repr__(self) -> str:
        return f"Task({self.number})"


class WheelMachine(RuleBasedStateMachine):
    """`stored` is the naive model: each task with its expiration and its place in the order of adding."""

    def __init__(self) -> None:
        super().__init__()
        self.size = 0
        self.wheel = TimingWheel(2)
        self.stored: dict[Task, tuple[int, int]] = {}
        self.removed: list[Task] = []
        # Those that got a later expiration. They may stand in earlier slots, and have no order within a tick.
        self.postponed: set[Task] = set()
        self.adds = 0
        # The target of a call of `advance` that its limit has stopped.
        self.unreached: int | None = None

    @initialize(size=st.sampled_from(SIZES), start=st.sampled_from([0, 0, 7, 399, 10**15]))
    def make(self, size: int, start: int) -> None:
        self.size = size
        self.wheel = TimingWheel(size, start)

    # Rules

    @rule(choice=CHOICES)
    def add(self, choice: Choice) -> None:
        self._add(Task(self.adds), self._instant(choice))

    @rule(choice=CHOICES, number=st.integers(2, 5))
    def add_several_at_once(self, choice: Choice, number: int) -> None:
        for _ in range(number):
            self._add(Task(self.adds), self._instant(choice))

    @precondition(lambda self: self.removed)
    @rule(choice=CHOICES)
    def add_again(self, choice: Choice) -> None:
        self._add(self.removed.pop(), self._instant(choice))

    @precondition(lambda self: self.stored)
    @rule(index=st.integers(0, 50))
    def remove(self, index: int) -> None:
        task = list(self.stored)[index % len(self.stored)]
        assert self.wheel.remove(task) is True
        assert self.wheel.remove(task) is False
        del self.stored[task]
        self.removed.append(task)

    @precondition(lambda self: self.stored)
    @rule(choice=CHOICES, index=st.integers(0, 50))
    def give_another_expiration(self, choice: Choice, index: int) -> None:
        task = list(self.stored)[index % len(self.stored)]
        place, before = self.wheel.locate(task), self.stored.pop(task)[0]
        expiration = self._instant(choice)
        stored = self.wheel.move(task, expiration)
        if expiration >= before:
            assert stored
            assert self.wheel.locate(task) == place
            self.stored[task] = (expiration, self.adds)
            self.postponed.add(task)
        elif stored:
            self._stored(task, expiration)
        else:
            assert expiration <= self.wheel.now
            self.removed.append(task)

    @rule(choice=CHOICES)
    def advance(self, choice: Choice) -> None:
        now = max(self.wheel.now, self._instant(choice))
        self._forget(self._advance(now), self._due(now))
        assert self.wheel.now == now
        self.unreached = None

    @rule(choice=CHOICES, limit=st.integers(0, 4))
    def advance_in_part(self, choice: Choice, limit: int) -> None:
        self._advance_in_part(max(self.wheel.now, self._instant(choice)), limit)

    @precondition(lambda self: self.unreached is not None)
    @rule(limit=st.integers(1, 4))
    def go_on_with_the_advance(self, limit: int) -> None:
        assert self.unreached is not None
        self._advance_in_part(self.unreached, limit)

    @precondition(lambda self: self.stored)
    @rule()
    def jump_to_the_next_expiration(self) -> None:
        now = self.wheel.next_expiration()
        assert now is not None
        self._forget(self._advance(now), self._due(now))
        assert self.wheel.now == now
        self.unreached = None

    # Invariants

    @invariant()
    def its_own_invariants_hold(self) -> None:
        check_wheel(self.wheel)

    @invariant()
    def it_counts_what_it_stores(self) -> None:
        assert len(self.wheel) == len(self.stored)
        assert all(task.scheduled for task in self.stored)
        assert not any(task.scheduled for task in self.removed)

    @invariant()
    def every_task_is_where_its_expiration_belongs(self) -> None:
        for task, (expiration, _) in self.stored.items():
            level, _ = self.wheel.locate(task)
            assert level < self.wheel.levels
            width = self.size**level
            position = self._position(task)
            assert position == expiration // width or (
                task in self.postponed and position < expiration // width
            )
            # The slot lies in the window that starts with the slot of the present. That slot itself is empty,
            # unless a limit has stopped the advance there.
            ahead = position - self.wheel.now // width
            assert ahead < self.size
            assert ahead > 0 or (self.unreached is not None and position * width == self.wheel.now)

    @invariant()
    def next_expiration_is_the_start_of_the_next_occupied_slot(self) -> None:
        starts = [self._position(task) * self.size ** self.wheel.locate(task)[0] for task in self.stored]
        next_expiration = self.wheel.next_expiration()
        assert next_expiration == min(starts, default=None)
        if next_expiration is not None:
            assert next_expiration <= min(expiration for expiration, _ in self.stored.values())
            assert next_expiration > self.wheel.now or self.unreached is not None

    # The model

    def _instant(self, choice: Choice) -> int:
        kind, number, offset = choice
        if kind == "ahead":
            return self.wheel.now + number
        if kind == "task":
            expirations = [expiration for expiration, _ in self.stored.values()]
            return (expirations[number % len(expirations)] if expirations else self.wheel.now) + offset
        width: int = self.size ** int(kind[-1])
        return (self.wheel.now // width + number) * width + offset

    def _add(self, task: Task, expiration: int) -> None:
        stored = self.wheel.add(task, expiration)
        assert stored is (expiration > self.wheel.now)
        if stored:
            self._stored(task, expiration)
        else:
            assert not task.scheduled

    def _stored(self, task: Task, expiration: int) -> None:
        self.stored[task] = (expiration, self.adds)
        self.postponed.discard(task)
        self.adds += 1
        level = 0
        while expiration // self.size**level - self.wheel.now // self.size**level >= self.size:
            level += 1
        # It is the lowest level whose window reaches the expiration.
        assert self.wheel.locate(task)[0] == level

    def _position(self, task: Task) -> int:
        """The number of the slot of `task`, counted from tick 0 in slots of its level."""
        level, slot = self.wheel.locate(task)
        first: int = self.wheel.now // self.size**level
        return first + (slot - first) % self.size

    def _advance(self, now: int, limit: int | None = None) -> list[Task]:
        return cast(list[Task], self.wheel.advance(now, limit))

    def _due(self, now: int) -> list[Task]:
        return sorted(
            (task for task in self.stored if self.stored[task][0] <= now), key=self.stored.__getitem__
        )

    def _forget(self, returned: list[Task], due: list[Task]) -> None:
        """Check that `returned` are `due`, but for the order of postponed ones within a tick."""
        assert len(set(returned)) == len(returned)
        assert [self.stored[task][0] for task in returned] == [self.stored[task][0] for task in due]
        kept = [task for task in returned if task not in self.postponed]
        order = sorted(self.stored, key=self.stored.__getitem__)
        assert kept == [task for task in order if task not in self.postponed][: len(kept)]
        for task in returned:
            assert not task.scheduled
            del self.stored[task]

    def _advance_in_part(self, now: int, limit: int) -> None:
        due = self._due(now)
        before = {task: self.wheel.locate(task) for task in self.stored}
        returned = self._advance(now, limit)
        count = len(returned)
        self._forget(returned, due[:count])

        after = {task: self.wheel.locate(task) for task in self.stored}
        moved = [task for task in after if after[task] != before[task]]
        assert count + len(moved) <= limit
        assert all(after[task][0] < before[task][0] or task in self.postponed for task in moved)

        next_expiration = self.wheel.next_expiration()
        if self.wheel.now == now and (next_expiration is None or next_expiration > now):
            assert count == len(due)
            self.unreached = None
        else:
            # It stopped because of the limit, and not one move earlier. (One move may span several levels.)
            # A postponed task may have moved through all levels, and back into the slot where it was.
            down = [
                self.wheel.levels + 1 if task in self.postponed else before[task][0] - after[task][0]
                for task in after
                if task in self.postponed or task in moved
            ]
            out = [
                self.wheel.levels + 1 if task in self.postponed else before[task][0] + 1 for task in returned
            ]
            assert limit <= sum(down) + sum(out)
            self.unreached = now


WheelMachine.TestCase.settings = settings(
    max_examples=2 * settings().max_examples,
    stateful_step_count=40,
    suppress_health_check=[HealthCheck.too_slow],
)
TestWheelAgainstASortedList = pytest.mark.usefixtures("untraced")(WheelMachine.TestCase)
