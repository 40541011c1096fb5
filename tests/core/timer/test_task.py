"""`TimerTask` can be subclassed in every way that Python allows for a class."""

from __future__ import annotations

import asyncio
import weakref
from typing import Any, Generic, TypeVar

import pytest

from purgatory import Timer, TimerTask, TimingWheel
from purgatory.testing import VirtualTimeLoop

T = TypeVar("T")


class WithSlots(TimerTask):
    __slots__ = ("name", "runs")

    def __init__(self, name: str = "slots") -> None:
        super().__init__()
        self.name = name
        self.runs = 0

    def run(self) -> None:
        self.runs += 1


class WithEmptySlots(WithSlots):
    __slots__ = ()


class WithDictionary(TimerTask):
    def __init__(self, name: str = "dictionary") -> None:
        super().__init__()
        self.name = name
        self.runs = 0

    def run(self) -> None:
        self.runs += 1


class WithSlotForWeakReferences(WithSlots):
    __slots__ = ("__weakref__",)


class Named:
    """An ordinary class with an initializer and state of its own."""

    def __init__(self, name: str) -> None:
        self.name = name


class WithExtraBaseAfter(TimerTask, Named):
    def __init__(self, name: str = "extra base after") -> None:
        TimerTask.__init__(self)
        Named.__init__(self, name)
        self.runs = 0

    def run(self) -> None:
        self.runs += 1


class WithExtraBaseBefore(Named, TimerTask):
    def __init__(self, name: str = "extra base before") -> None:
        TimerTask.__init__(self)
        Named.__init__(self, name)
        self.runs = 0

    def run(self) -> None:
        self.runs += 1


class Counted(Generic[T]):
    runs: T


class WithGenericBase(TimerTask, Counted[int]):
    def __init__(self) -> None:
        super().__init__()
        self.runs = 0

    def run(self) -> None:
        self.runs += 1


class WithEqualityOfItsOwn(TimerTask):
    """A class whose objects are all equal, and none of them hashable."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self) -> None:
        super().__init__()
        self.runs = 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, WithEqualityOfItsOwn)

    def __bool__(self) -> bool:
        return False

    def run(self) -> None:
        self.runs += 1


KINDS: list[type[Any]] = [
    WithSlots,
    WithEmptySlots,
    WithDictionary,
    WithSlotForWeakReferences,
    WithExtraBaseAfter,
    WithExtraBaseBefore,
    WithGenericBase,
    WithEqualityOfItsOwn,
]
WEAKLY_REFERABLE: list[type[Any]] = [
    WithDictionary,
    WithSlotForWeakReferences,
    WithExtraBaseAfter,
    WithExtraBaseBefore,
    WithGenericBase,
]


@pytest.mark.parametrize("kind", KINDS)
def test_a_wheel_stores_locates_removes_and_returns_a_task_of_any_kind_of_class(kind: type[Any]) -> None:
    wheel = TimingWheel(20)
    first, second, third = kind(), kind(), kind()
    for task in (first, second, third):
        assert wheel.add(task, 30)
        assert task.scheduled
        assert wheel.locate(task) == (1, 1)
    assert wheel.remove(second)
    assert not second.scheduled
    due = wheel.advance(30)
    assert len(due) == 2
    assert due[0] is first
    assert due[1] is third
    assert not first.scheduled
    assert not third.scheduled


@pytest.mark.parametrize("kind", KINDS)
async def test_a_timer_runs_a_task_of_any_kind_of_class_once(
    kind: type[Any], virtual_time: VirtualTimeLoop
) -> None:
    timer = Timer()
    timer.start(virtual_time)
    task, removed = kind(), kind()
    assert timer.add(task, 1.0)
    assert timer.add(removed, 1.0)
    assert timer.remove(removed)
    await asyncio.sleep(1.0)
    timer.drive()
    assert (task.runs, removed.runs) == (1, 0)


def test_a_subclass_with_slots_has_no_dictionary() -> None:
    task = WithEmptySlots()
    assert not hasattr(task, "__dict__")
    with pytest.raises(AttributeError):
        task.surprise = 1  # type: ignore[attr-defined]


@pytest.mark.parametrize("kind", WEAKLY_REFERABLE)
def test_a_removed_task_is_freed_by_its_reference_count(kind: type[Any], collector_off: None) -> None:
    wheel = TimingWheel(20)
    task, neighbour = kind(), kind()
    wheel.add(task, 30)
    wheel.add(neighbour, 30)
    wheel.remove(task)
    reference = weakref.ref(task)
    del task
    assert reference() is None
    assert wheel.locate(neighbour) == (1, 1)


@pytest.mark.parametrize("kind", WEAKLY_REFERABLE)
def test_an_expired_task_is_freed_by_its_reference_count(kind: type[Any], collector_off: None) -> None:
    wheel = TimingWheel(20)
    task = kind()
    wheel.add(task, 450)
    reference = weakref.ref(task)
    del task
    assert reference() is not None
    assert len(wheel.advance(500)) == 1
    assert reference() is None


def test_a_removed_task_does_not_keep_its_former_neighbours_alive(collector_off: None) -> None:
    wheel = TimingWheel(20)
    first, middle, last = WithDictionary(), WithDictionary(), WithDictionary()
    for task in (first, middle, last):
        wheel.add(task, 30)
    wheel.remove(middle)
    references = [weakref.ref(first), weakref.ref(last)]
    del task, first, last
    assert len(wheel.advance(30)) == 2
    assert [reference() for reference in references] == [None, None]
    assert not middle.scheduled


def test_a_new_task_is_not_scheduled_and_has_no_deadline() -> None:
    task = TimerTask()
    assert not task.scheduled
    assert task.deadline is None


def test_running_a_task_without_run_raises_an_error_that_names_its_class() -> None:
    class Forgetful(TimerTask):
        pass

    with pytest.raises(
        NotImplementedError, match=r"Forgetful is run by a Timer, so it must override run\(\)"
    ):
        Forgetful().run()
