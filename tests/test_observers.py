"""Those who are told what a purgatory does."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import pytest

from purgatory import DelayedOperation, Purgatory, PurgatoryFull
from purgatory.observer import Observer, Timing
from purgatory.testing import ManualClock
from tests.operations import Gate, Stop, raising


class Diary:
    def __init__(self) -> None:
        self.finished: list[tuple[str, str]] = []
        self.checked: list[tuple[Hashable, int, int]] = []

    def operation_finished(self, purgatory: str, operation: DelayedOperation[Any], timing: Timing) -> None:
        assert operation.done
        assert isinstance(operation, Gate)
        self.finished.append((operation.name, operation.state.name))

    def key_checked(self, purgatory: str, key: Hashable, tried: int, completed: int, at: float) -> None:
        self.checked.append((key, tried, completed))


class Troublemaker:
    def __init__(self, error: BaseException) -> None:
        self.error = error

    def operation_finished(self, purgatory: str, operation: DelayedOperation[Any], timing: Timing) -> None:
        raise self.error

    def key_checked(self, purgatory: str, key: Hashable, tried: int, completed: int, at: float) -> None:
        raise self.error


def test_every_operation_that_ends_is_told_once_in_whichever_way() -> None:
    diary: Observer = Diary()
    clock = ManualClock()
    purgatory = clock.purgatory(observers=[diary])
    gates = {
        name: Gate(1, name) for name in ("completed", "expired", "withdrawn", "failed", "at once", "no time")
    }
    gates["at once"].opened = True
    gates["no time"].reschedule(0)
    gates["failed"].completing = raising(ValueError("bad"))
    for gate in gates.values():
        purgatory.try_complete_else_watch(gate, ["a", "b"])
    gates["completed"].force_complete()
    gates["withdrawn"].cancel()
    gates["failed"].force_complete()
    with pytest.raises(ExceptionGroup):
        clock.advance(1)
    assert isinstance(diary, Diary)
    assert diary.finished == [
        ("at once", "COMPLETED"),
        ("no time", "EXPIRED"),
        ("completed", "COMPLETED"),
        ("withdrawn", "CANCELLED"),
        ("failed", "FAILED"),
        ("expired", "EXPIRED"),
    ]
    assert diary.checked == []


def test_the_outcome_is_there_when_it_is_told() -> None:
    results: list[object] = []

    class Reader(Diary):
        def operation_finished(
            self, purgatory: str, operation: DelayedOperation[Any], timing: Timing
        ) -> None:
            results.append((operation.result(), operation.keys, operation.deadline))

    purgatory = ManualClock().purgatory(observers=[Reader()])
    purgatory.try_complete_else_watch(Gate(5, "outcome"), ["a", "b"]).force_complete()
    assert results == [("outcome", ("a", "b"), 5.0)]


def test_an_operations_stay_is_told_with_it() -> None:
    told: list[tuple[str, float, float, int]] = []

    class Clocked(Diary):
        def operation_finished(
            self, purgatory: str, operation: DelayedOperation[Any], timing: Timing
        ) -> None:
            told.append((purgatory, timing.offered, timing.ended, timing.tries))

    clock = ManualClock()
    held = clock.purgatory("held", observers=[Clocked()])
    clock.advance(3)
    gates = [held.try_complete_else_watch(Gate(5), ["a", "b"]) for _ in range(20)]
    held.try_complete_else_watch(Gate(opened=True), ["a"])
    held.try_complete_else_watch(Gate(0), ["a"])
    clock.advance(1)
    held.check_and_complete("a")
    gates[0].opened = True
    held.check_and_complete("b")
    gates[1].cancel()
    clock.advance(4)
    # Those that end at once, in the third second; the one that completes and the one withdrawn; the rest.
    assert told[:4] == [("held", 3.0, 3.0, 1)] * 2 + [("held", 3.0, 4.0, 3)] * 2
    assert told[4:] == [("held", 3.0, 8.0, 3)] * 18


def test_a_stay_says_what_it_knows() -> None:
    timing = Timing()
    timing.offered, timing.ended, timing.tries = 1.5, 2.5, 3
    assert repr(timing) == "<Timing offered=1.5 ended=2.5 tries=3>"


def test_an_operation_that_is_refused_may_be_offered_to_another_purgatory() -> None:
    told: list[float] = []

    class Clocked(Diary):
        def operation_finished(
            self, purgatory: str, operation: DelayedOperation[Any], timing: Timing
        ) -> None:
            told.append(timing.offered)

    clock = ManualClock()
    full = clock.purgatory(max_pending=1, observers=[Clocked()])
    full.try_complete_else_watch(Gate(60), ["a"])
    refused = Gate(60)
    with pytest.raises(PurgatoryFull):
        full.try_complete_else_watch(refused, ["a"])
    clock.advance(1)
    clock.purgatory(observers=[Clocked()]).try_complete_else_watch(refused, ["a"]).force_complete()
    assert told == [1.0]


async def test_every_check_is_told_with_what_it_tried_and_completed() -> None:
    diary = Diary()
    async with Purgatory(observers=[diary]) as purgatory:
        gates = [purgatory.try_complete_else_watch(Gate(), ["a", "b"]) for _ in range(40)]
        purgatory.check_and_complete("nobody watches")
        purgatory.check_and_complete("a")
        for gate in gates[:10]:
            gate.opened = True
        purgatory.check_and_complete("a")
        gates[10].opened = True
        await purgatory.sweep("b")
        await purgatory.sweep("nobody watches")
        once = ["b"]
        gates[11].trying = lambda: once and purgatory.check_and_complete(once.pop())
        purgatory.check_and_complete("a")
    assert diary.checked == [
        ("nobody watches", 0, 0),
        ("a", 40, 0),
        ("a", 40, 10),
        ("b", 30, 1),
        ("nobody watches", 0, 0),
        ("a", 29, 0),
        ("b", 29, 0),
    ]


def test_a_check_is_told_with_its_purgatory_and_its_time() -> None:
    told: list[tuple[str, Hashable, float]] = []

    class Clocked(Diary):
        def key_checked(self, purgatory: str, key: Hashable, tried: int, completed: int, at: float) -> None:
            told.append((purgatory, key, at))

    clock = ManualClock()
    clocked = Clocked()
    first, other = (clock.purgatory(name, observers=[clocked]) for name in ("first", "other"))
    first.try_complete_else_watch(Gate(60), ["a"])
    clock.advance(2)
    first.check_and_complete("a")
    other.check_and_complete("nobody watches")
    assert told == [("first", "a", 2.0), ("other", "nobody watches", 2.0)]


def test_several_observers_are_told_in_order_and_one_that_raises_harms_nobody() -> None:
    error = ValueError("observer")
    first, last = Diary(), Diary()
    clock = ManualClock()
    observers: list[Observer] = [first, Troublemaker(error), last]
    purgatory = clock.purgatory(observers=iter(observers))
    gate = purgatory.try_complete_else_watch(Gate(60, "watched"), ["a"])
    gate.opened = True
    assert purgatory.check_and_complete("a") == 1
    assert purgatory.check_and_complete("a") == 0
    for diary in (first, last):
        assert diary.finished == [("watched", "COMPLETED")]
        assert diary.checked == [("a", 1, 1), ("a", 0, 0)]
    with pytest.raises(ExceptionGroup) as caught:
        clock.advance(0)
    assert list(caught.value.exceptions) == [error] * 3
    assert purgatory.statistics().completed == 1


async def test_an_observer_that_raises_is_named_to_the_loops_exception_handler(
    reported: list[dict[str, Any]],
) -> None:
    error = ValueError("observer")
    async with Purgatory(observers=[Troublemaker(error)]) as purgatory:
        purgatory.try_complete_else_watch(Gate(60, opened=True), ["a"])
        assert await purgatory.sweep("a") == 0
    assert [context["exception"] for context in reported] == [error, error]
    assert all("Troublemaker" in context["message"] for context in reported)


def test_a_base_exception_of_an_observer_goes_up_and_the_books_are_right() -> None:
    stop = Stop("observer")
    troublemaker = Troublemaker(stop)
    clock = ManualClock()
    purgatory = clock.purgatory(observers=[troublemaker])
    gate = purgatory.try_complete_else_watch(Gate(60), ["a"])
    with pytest.raises(Stop):
        gate.force_complete()
    with pytest.raises(Stop):
        purgatory.check_and_complete("a")
    assert purgatory.statistics().completed == 1
    troublemaker.error = ValueError("no more")
    waiting = purgatory.try_complete_else_watch(Gate(60), ["a"])
    waiting.opened = True
    # Not left in a queue that nobody runs any more.
    assert purgatory.check_and_complete("a") == 1
    with pytest.raises(ExceptionGroup):
        clock.advance(0)


def test_an_observer_may_call_the_purgatory() -> None:
    class Refiller(Diary):
        def operation_finished(
            self, purgatory: str, operation: DelayedOperation[Any], timing: Timing
        ) -> None:
            super().operation_finished(purgatory, operation, timing)
            if len(self.finished) < 5:
                next_one = held.try_complete_else_watch(Gate(60, str(len(self.finished))), ["a"])
                next_one.opened = True
                assert held.check_and_complete("a") == 0

    refiller = Refiller()
    held = ManualClock().purgatory(observers=[refiller])
    held.try_complete_else_watch(Gate(60, "0", opened=True), ["a"])
    assert [name for name, _ in refiller.finished] == ["0", "1", "2", "3", "4"]
    assert held.statistics().pending == 0


def test_one_that_is_added_later_is_told_of_everything_from_then_on_after_the_others() -> None:
    told: list[str] = []

    class Teller(Diary):
        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

        def operation_finished(
            self, purgatory: str, operation: DelayedOperation[Any], timing: Timing
        ) -> None:
            told.append(f"{self.name}: {operation.keys[0]}, tried {timing.tries} times")

        def key_checked(self, purgatory: str, key: Hashable, tried: int, completed: int, at: float) -> None:
            told.append(f"{self.name}: check of {key}")

    clock = ManualClock()
    held = clock.purgatory(observers=[Teller("first")])
    waiting = held.try_complete_else_watch(Gate(60), ["a"])
    held.try_complete_else_watch(Gate(60), ["b"]).cancel()
    held.add_observer(Teller("last"))
    waiting.opened = True
    held.check_and_complete("a")
    assert told == [
        "first: b, tried 1 times",
        "first: a, tried 2 times",
        "last: a, tried 2 times",
        "first: check of a",
        "last: check of a",
    ]


def test_where_it_is_the_first_what_waits_already_ends_untold_in_whichever_way() -> None:
    diary = Diary()
    clock = ManualClock()
    held = clock.purgatory()
    for name in ("completed", "expired", "withdrawn", "failed"):
        held.try_complete_else_watch(Gate(1, name), ["before", name])
    held.add_observer(diary)
    for name in ("after", "at once"):
        held.try_complete_else_watch(Gate(1, name, opened=name == "at once"), ["before"])
    held.cancel_for_key("withdrawn")
    (failing,) = held.operations("failed")
    assert isinstance(failing, Gate)
    failing.trying = raising(ValueError("bad"))
    (opened,) = held.operations("completed")
    assert isinstance(opened, Gate)
    opened.opened = True
    assert held.check_and_complete("before") == 1
    with pytest.raises(ExceptionGroup):
        clock.advance(1)
    assert diary.finished == [("at once", "COMPLETED"), ("after", "EXPIRED")]
    assert diary.checked == [("before", 4, 1)]
    statistics = held.statistics()
    assert (statistics.completed, statistics.expired, statistics.cancelled, statistics.failed) == (2, 2, 1, 1)


def test_one_that_is_added_within_the_first_try_of_an_operation_is_not_told_of_that_one() -> None:
    diary = Diary()
    held = ManualClock().purgatory()
    gate = Gate(60, trying=lambda: held.add_observer(diary))
    held.try_complete_else_watch(gate, ["a"])
    gate.trying, gate.opened = None, True
    assert held.check_and_complete("a") == 1
    assert diary.finished == []
    assert diary.checked == [("a", 1, 1)]
