"""Observers are called for every operation that ends and every check of a key."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextvars import Context
from typing import Any, NoReturn, TypeVarTuple

import pytest

from purgatory import DelayedOperation, Purgatory, PurgatoryFull
from purgatory.observer import Observer, Timing, timing_of
from purgatory.testing import ManualClock
from tests.operations import Gate, Stop, raising

Ts = TypeVarTuple("Ts")


class Log:
    """Records the calls."""

    def __init__(self) -> None:
        self.finished: list[tuple[str, str]] = []
        self.checked: list[tuple[Hashable, int, int]] = []

    def operation_finished(self, purgatory: str, operation: DelayedOperation[Any], timing: Timing) -> None:
        assert operation.done
        assert isinstance(operation, Gate)
        self.finished.append((operation.name, operation.state.name))

    def key_checked(self, purgatory: str, key: Hashable, tried: int, completed: int, at: float) -> None:
        self.checked.append((key, tried, completed))


class BrokenObserver:
    """Raises `error` in every call."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def operation_finished(self, purgatory: str, operation: DelayedOperation[Any], timing: Timing) -> None:
        raise self.error

    def key_checked(self, purgatory: str, key: Hashable, tried: int, completed: int, at: float) -> None:
        raise self.error


def test_every_operation_that_ends_is_observed_once() -> None:
    log: Observer = Log()
    clock = ManualClock()
    purgatory = clock.purgatory(observers=[log])
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
    assert isinstance(log, Log)
    assert log.finished == [
        ("at once", "COMPLETED"),
        ("no time", "EXPIRED"),
        ("completed", "COMPLETED"),
        ("withdrawn", "CANCELLED"),
        ("failed", "FAILED"),
        ("expired", "EXPIRED"),
    ]
    assert log.checked == []


def test_an_observer_can_read_the_result_keys_and_deadline() -> None:
    results: list[object] = []

    class ResultLog(Log):
        def operation_finished(
            self, purgatory: str, operation: DelayedOperation[Any], timing: Timing
        ) -> None:
            results.append((operation.result(), operation.keys, operation.deadline))

    purgatory = ManualClock().purgatory(observers=[ResultLog()])
    purgatory.try_complete_else_watch(Gate(5, "outcome"), ["a", "b"]).force_complete()
    assert results == [("outcome", ("a", "b"), 5.0)]


def test_an_observer_receives_the_timing_of_the_operation() -> None:
    calls: list[tuple[str, float, float, int]] = []

    class TimedLog(Log):
        def operation_finished(
            self, purgatory: str, operation: DelayedOperation[Any], timing: Timing
        ) -> None:
            calls.append((purgatory, timing.offered, timing.ended, timing.tries))

    clock = ManualClock()
    purgatory = clock.purgatory("purgatory", observers=[TimedLog()])
    clock.advance(3)
    gates = [purgatory.try_complete_else_watch(Gate(5), ["a", "b"]) for _ in range(20)]
    purgatory.try_complete_else_watch(Gate(opened=True), ["a"])
    purgatory.try_complete_else_watch(Gate(0), ["a"])
    clock.advance(1)
    purgatory.check_and_complete("a")
    gates[0].opened = True
    purgatory.check_and_complete("b")
    gates[1].cancel()
    clock.advance(4)
    # Two end when they are offered, one completes, one is withdrawn, and the rest expire.
    assert calls[:4] == [("purgatory", 3.0, 3.0, 1)] * 2 + [("purgatory", 3.0, 4.0, 3)] * 2
    assert calls[4:] == [("purgatory", 3.0, 8.0, 3)] * 18


def test_the_repr_of_a_timing_has_its_fields() -> None:
    timing = Timing()
    timing.offered, timing.ended, timing.tries = 1.5, 2.5, 3
    assert repr(timing) == "<Timing offered=1.5 ended=2.5 tries=3>"


def test_the_timing_of_a_refused_operation_starts_again_in_another_purgatory() -> None:
    calls: list[float] = []

    class TimedLog(Log):
        def operation_finished(
            self, purgatory: str, operation: DelayedOperation[Any], timing: Timing
        ) -> None:
            calls.append(timing.offered)

    clock = ManualClock()
    full = clock.purgatory(max_pending=1, observers=[TimedLog()])
    full.try_complete_else_watch(Gate(60), ["a"])
    refused = Gate(60)
    with pytest.raises(PurgatoryFull):
        full.try_complete_else_watch(refused, ["a"])
    clock.advance(1)
    clock.purgatory(observers=[TimedLog()]).try_complete_else_watch(refused, ["a"]).force_complete()
    assert calls == [1.0]


async def test_every_check_is_observed_with_the_operations_it_tried_and_completed() -> None:
    log = Log()
    async with Purgatory(observers=[log]) as purgatory:
        gates = [purgatory.try_complete_else_watch(Gate(), ["a", "b"]) for _ in range(40)]
        purgatory.check_and_complete("unwatched")
        purgatory.check_and_complete("a")
        for gate in gates[:10]:
            gate.opened = True
        purgatory.check_and_complete("a")
        gates[10].opened = True
        await purgatory.sweep("b")
        await purgatory.sweep("unwatched")
        once = ["b"]
        gates[11].trying = lambda: once and purgatory.check_and_complete(once.pop())
        purgatory.check_and_complete("a")
    assert log.checked == [
        ("unwatched", 0, 0),
        ("a", 40, 0),
        ("a", 40, 10),
        ("b", 30, 1),
        ("unwatched", 0, 0),
        ("a", 29, 0),
        ("b", 29, 0),
    ]


def test_a_check_is_observed_with_its_purgatory_and_its_time() -> None:
    calls: list[tuple[str, Hashable, float]] = []

    class TimedLog(Log):
        def key_checked(self, purgatory: str, key: Hashable, tried: int, completed: int, at: float) -> None:
            calls.append((purgatory, key, at))

    clock = ManualClock()
    timed_log = TimedLog()
    first, other = (clock.purgatory(name, observers=[timed_log]) for name in ("first", "other"))
    first.try_complete_else_watch(Gate(60), ["a"])
    clock.advance(2)
    first.check_and_complete("a")
    other.check_and_complete("unwatched")
    assert calls == [("first", "a", 2.0), ("other", "unwatched", 2.0)]


def test_several_observers_are_called_in_order_even_if_one_of_them_raises() -> None:
    error = ValueError("observer")
    first, last = Log(), Log()
    clock = ManualClock()
    observers: list[Observer] = [first, BrokenObserver(error), last]
    purgatory = clock.purgatory(observers=iter(observers))
    gate = purgatory.try_complete_else_watch(Gate(60, "watched"), ["a"])
    gate.opened = True
    assert purgatory.check_and_complete("a") == 1
    assert purgatory.check_and_complete("a") == 0
    for log in (first, last):
        assert log.finished == [("watched", "COMPLETED")]
        assert log.checked == [("a", 1, 1), ("a", 0, 0)]
    with pytest.raises(ExceptionGroup) as caught:
        clock.advance(0)
    assert list(caught.value.exceptions) == [error] * 3
    assert purgatory.statistics().completed == 1


async def test_an_observer_that_raises_is_named_to_the_loops_exception_handler(
    reported: list[dict[str, Any]],
) -> None:
    error = ValueError("observer")
    async with Purgatory(observers=[BrokenObserver(error)]) as purgatory:
        purgatory.try_complete_else_watch(Gate(60, opened=True), ["a"])
        assert await purgatory.sweep("a") == 0
    assert [context["exception"] for context in reported] == [error, error]
    assert all("BrokenObserver" in context["message"] for context in reported)


@pytest.mark.parametrize("failing", [False, True])
def test_the_others_are_told_before_the_base_exception_of_an_observer_is_raised(failing: bool) -> None:
    stop = Stop("observer")
    log = Log()
    clock = ManualClock()
    purgatory = clock.purgatory(observers=[BrokenObserver(stop), BrokenObserver(Stop("another")), log])
    failure = raising(ValueError("hook")) if failing else None
    gate = purgatory.try_complete_else_watch(Gate(60, "watched", completing=failure), ["a"])
    with pytest.raises(Stop) as ended:
        gate.force_complete()
    with pytest.raises(Stop) as checked:
        purgatory.check_and_complete("a")
    assert ended.value is checked.value is stop
    assert log.finished == [("watched", "FAILED" if failing else "COMPLETED")]
    assert log.checked == [("a", 0, 0)]
    if failing:
        with pytest.raises(ExceptionGroup):
            clock.advance(0)


class FullLoop(ManualClock):
    """Has no memory for another callback."""

    def call_soon(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> NoReturn:
        raise MemoryError("no room")


def test_the_observers_are_told_of_a_failure_that_the_loop_has_no_room_to_report() -> None:
    log = Log()
    purgatory = FullLoop().purgatory(observers=[log])
    gate = purgatory.try_complete_else_watch(
        Gate(60, "watched", completing=raising(ValueError("hook"))), ["a"]
    )
    with pytest.raises(MemoryError):
        gate.force_complete()
    assert log.finished == [("watched", "FAILED")]


def test_the_failure_of_an_observer_that_cannot_be_reported_is_raised_after_the_others_are_told() -> None:
    log = Log()
    clock = FullLoop()
    purgatory = clock.purgatory(observers=[BrokenObserver(ValueError("observer")), log])
    gate = purgatory.try_complete_else_watch(Gate(60, "watched"), ["a"])
    with pytest.raises(MemoryError):
        gate.force_complete()
    with pytest.raises(MemoryError):
        purgatory.check_and_complete("a")
    assert (log.finished, log.checked) == ([("watched", "COMPLETED")], [("a", 0, 0)])
    with pytest.raises(ExceptionGroup):
        clock.advance(0)


def test_an_observer_may_call_the_purgatory() -> None:
    class Refiller(Log):
        def operation_finished(
            self, purgatory: str, operation: DelayedOperation[Any], timing: Timing
        ) -> None:
            super().operation_finished(purgatory, operation, timing)
            if len(self.finished) < 5:
                next_one = refilled.try_complete_else_watch(Gate(60, str(len(self.finished))), ["a"])
                next_one.opened = True
                assert refilled.check_and_complete("a") == 0

    refiller = Refiller()
    refilled = ManualClock().purgatory(observers=[refiller])
    refilled.try_complete_else_watch(Gate(60, "0", opened=True), ["a"])
    assert [name for name, _ in refiller.finished] == ["0", "1", "2", "3", "4"]
    assert refilled.statistics().pending == 0


def test_an_observer_that_is_added_later_is_called_from_then_on_after_the_others() -> None:
    calls: list[str] = []

    class NamedLog(Log):
        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

        def operation_finished(
            self, purgatory: str, operation: DelayedOperation[Any], timing: Timing
        ) -> None:
            calls.append(f"{self.name}: {operation.keys[0]}, tried {timing.tries} times")

        def key_checked(self, purgatory: str, key: Hashable, tried: int, completed: int, at: float) -> None:
            calls.append(f"{self.name}: check of {key}")

    clock = ManualClock()
    purgatory = clock.purgatory(observers=[NamedLog("first")])
    waiting = purgatory.try_complete_else_watch(Gate(60), ["a"])
    purgatory.try_complete_else_watch(Gate(60), ["b"]).cancel()
    purgatory.add_observer(NamedLog("last"))
    waiting.opened = True
    purgatory.check_and_complete("a")
    assert calls == [
        "first: b, tried 1 times",
        "first: a, tried 2 times",
        "last: a, tried 2 times",
        "first: check of a",
        "last: check of a",
    ]


def test_operations_older_than_the_first_observer_end_unobserved() -> None:
    log = Log()
    clock = ManualClock()
    purgatory = clock.purgatory()
    for name in ("completed", "expired", "withdrawn", "failed"):
        purgatory.try_complete_else_watch(Gate(1, name), ["before", name])
    purgatory.add_observer(log)
    for name in ("after", "at once"):
        purgatory.try_complete_else_watch(Gate(1, name, opened=name == "at once"), ["before"])
    purgatory.cancel_for_key("withdrawn")
    (failing,) = purgatory.operations("failed")
    assert isinstance(failing, Gate)
    failing.trying = raising(ValueError("bad"))
    (opened,) = purgatory.operations("completed")
    assert isinstance(opened, Gate)
    opened.opened = True
    assert purgatory.check_and_complete("before") == 1
    with pytest.raises(ExceptionGroup):
        clock.advance(1)
    assert log.finished == [("at once", "COMPLETED"), ("after", "EXPIRED")]
    assert log.checked == [("before", 4, 1)]
    statistics = purgatory.statistics()
    assert (statistics.completed, statistics.expired, statistics.cancelled, statistics.failed) == (2, 2, 1, 1)


def test_an_operation_whose_first_try_adds_the_first_observer_is_not_observed() -> None:
    log = Log()
    purgatory = ManualClock().purgatory()
    gate = Gate(60, trying=lambda: purgatory.add_observer(log))
    purgatory.try_complete_else_watch(gate, ["a"])
    gate.trying, gate.opened = None, True
    assert purgatory.check_and_complete("a") == 1
    assert log.finished == []
    assert log.checked == [("a", 1, 1)]


def test_a_removed_observer_is_told_nothing_more_and_the_others_are() -> None:
    clock = ManualClock()
    stays, goes = Log(), Log()
    purgatory = clock.purgatory(observers=[goes, stays])
    assert purgatory.remove_observer(goes)
    assert not purgatory.remove_observer(goes)
    purgatory.check_and_complete("a")
    assert (stays.checked, goes.checked) == ([("a", 0, 0)], [])


def test_without_its_last_observer_nobody_notes_when_an_operation_comes() -> None:
    clock = ManualClock()
    log = Log()
    purgatory = clock.purgatory(observers=[log])
    early = purgatory.try_complete_else_watch(Gate(name="early"), ["a"])
    assert purgatory.remove_observer(log)
    late = purgatory.try_complete_else_watch(Gate(name="late"), ["a"])
    assert (timing_of(early) is None, timing_of(late) is None) == (False, True)
    purgatory.add_observer(log)
    assert purgatory.cancel_for_key("a") == [early, late]
    assert log.finished == [("early", "CANCELLED")]


def test_an_observer_that_removes_itself_is_called_once() -> None:
    clock = ManualClock()

    class Once(Log):
        def key_checked(self, purgatory: str, key: Hashable, tried: int, completed: int, at: float) -> None:
            super().key_checked(purgatory, key, tried, completed, at)
            assert held.remove_observer(self)

    once, other = Once(), Log()
    held = clock.purgatory(observers=[once, other])
    held.check_and_complete("a")
    held.check_and_complete("b")
    assert (once.checked, other.checked) == ([("a", 0, 0)], [("a", 0, 0), ("b", 0, 0)])
