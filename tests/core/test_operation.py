"""One operation: its attributes, the ways in which it ends, awaiting it, and subclasses of every kind."""

from __future__ import annotations

import asyncio
import gc
import math
import traceback
import weakref
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

import pytest

from purgatory import DelayedOperation, OperationState, OperationWithdrawn, Purgatory
from purgatory.testing import ManualClock, VirtualTimeLoop
from tests.operations import Gate, Stop, raising

T = TypeVar("T")


# Timeout


@pytest.mark.parametrize(
    ("given", "kept"),
    [(None, None), (math.inf, None), (5, 5.0), (2.5, 2.5), (0, 0.0), (-3, -3.0), (-math.inf, -math.inf)],
)
def test_the_timeout_is_in_seconds_and_none_means_never(given: float | None, kept: float | None) -> None:
    gate = Gate(given)
    assert gate.timeout == kept
    assert kept is None or type(gate.timeout) is float


def test_nan_is_refused_as_a_timeout() -> None:
    with pytest.raises(ValueError, match="NaN"):
        Gate(math.nan)
    gate = Gate(5)
    with pytest.raises(ValueError, match="NaN"):
        gate.reschedule(math.nan)
    assert gate.timeout == 5


@pytest.mark.parametrize("bad", ["5", b"5", [5], 5j, object()], ids=lambda bad: type(bad).__name__)
def test_a_timeout_that_is_not_a_number_is_refused(bad: Any) -> None:
    with pytest.raises(TypeError):
        Gate(bad)
    gate = Gate(5)
    with pytest.raises(TypeError):
        gate.reschedule(bad)
    assert gate.timeout == 5


# Attributes


def test_a_new_operation_has_no_keys_and_no_deadline() -> None:
    gate = Gate(5)
    assert gate.state is OperationState.NEW
    assert not gate.done
    assert not gate.expired
    assert not gate.scheduled
    assert gate.keys == ()
    assert gate.deadline is None


def test_a_pending_operation_has_its_keys_and_its_deadline() -> None:
    clock = ManualClock()
    clock.advance(3)
    gate = clock.purgatory().try_complete_else_watch(Gate(5), ["b", "a", "b"])
    assert gate.state is OperationState.PENDING
    assert not gate.done
    assert not gate.expired
    assert gate.scheduled
    assert gate.keys == ("b", "a")
    assert gate.deadline == 8.0


@pytest.mark.parametrize("timeout", [None, math.inf])
def test_an_operation_that_never_expires_has_no_deadline(timeout: float | None) -> None:
    gate = ManualClock().purgatory().try_complete_else_watch(Gate(timeout), ["a"])
    assert gate.state is OperationState.PENDING
    assert gate.deadline is None
    assert not gate.scheduled


@pytest.mark.parametrize("keys", [["a"], ["a", "b"]], ids=["one key", "two keys"])
def test_an_operation_that_has_ended_keeps_its_keys_and_its_deadline(keys: list[str]) -> None:
    clock = ManualClock()
    purgatory = clock.purgatory()
    gates = [purgatory.try_complete_else_watch(Gate(5), keys) for _ in range(4)]
    gates[0].force_complete()
    gates[1].cancel()
    gates[2].expiring = raising(ValueError("bad"))
    with pytest.raises(ExceptionGroup):
        clock.advance(6)
    assert [gate.state.name for gate in gates] == ["COMPLETED", "CANCELLED", "FAILED", "EXPIRED"]
    for gate in gates:
        assert gate.done
        assert gate.expired == (gate is gates[3])
        assert not gate.scheduled
        assert gate.keys == tuple(keys)
        assert gate.deadline == 5.0


def test_every_state_has_a_name_and_a_value() -> None:
    values = ["new", "pending", "completed", "expired", "cancelled", "failed"]
    assert [state.value for state in OperationState] == values
    assert [state.name.lower() for state in OperationState] == values


def test_the_repr_is_one_line_with_the_state() -> None:
    purgatory = ManualClock().purgatory()
    gate = Gate(1.5)
    assert repr(gate) == "<Gate new timeout=1.5 s keys=[]>"
    purgatory.try_complete_else_watch(gate, ["two\nlines", 5])
    assert repr(gate) == "<Gate pending timeout=1.5 s keys=['two\\nlines', 5] tried once>"
    gate.reschedule(None)
    purgatory.check_and_complete(5)
    gate.cancel()
    assert repr(gate) == "<Gate cancelled timeout=None keys=['two\\nlines', 5] tried 2 times>"


# Ending


def test_an_operation_that_was_never_offered_can_be_completed_once() -> None:
    gate = Gate(name="done")
    assert gate.force_complete()
    assert not gate.force_complete()
    assert not gate.cancel()
    assert gate.state is OperationState.COMPLETED
    assert gate.ran == ["on_complete"]
    assert gate.result() == "done"


def test_an_operation_that_was_never_offered_can_be_withdrawn_once() -> None:
    gate = Gate()
    assert gate.cancel()
    assert not gate.cancel()
    assert not gate.force_complete()
    assert gate.state is OperationState.CANCELLED
    assert gate.ran == []


@pytest.mark.parametrize("error", [ValueError("bad"), Stop("bad")], ids=repr)
def test_an_operation_that_was_never_offered_raises_the_exception_of_its_hook_to_the_caller(
    error: BaseException,
) -> None:
    gate = Gate(completing=raising(error))
    with pytest.raises(type(error), match="bad"):
        gate.force_complete()
    assert gate.state is OperationState.FAILED
    assert gate.exception() is error
    assert not gate.force_complete()


def test_hooks_see_the_final_state_and_empty_watch_lists() -> None:
    seen: list[tuple[str, str, bool, int, int, tuple[object, ...]]] = []

    def look(hook: str, gate: Gate) -> None:
        figures = purgatory.statistics()
        seen.append((hook, gate.state.name, gate.done, figures.pending, figures.keys, gate.keys))

    clock = ManualClock()
    purgatory = clock.purgatory()
    for state in ("COMPLETED", "EXPIRED"):
        gate = Gate(1)
        gate.completing = partial(look, "on_complete", gate)
        gate.expiring = partial(look, "on_expiration", gate)
        purgatory.try_complete_else_watch(gate, ["a", "b"])
        if state == "COMPLETED":
            gate.force_complete()
        else:
            clock.advance(1)
    assert seen == [
        ("on_complete", "COMPLETED", True, 0, 0, ("a", "b")),
        ("on_complete", "EXPIRED", True, 0, 0, ("a", "b")),
        ("on_expiration", "EXPIRED", True, 0, 0, ("a", "b")),
    ]


def test_hooks_that_are_not_overridden_do_nothing() -> None:
    class Bare(DelayedOperation[None]):
        def try_complete(self) -> bool:
            return False

    clock = ManualClock()
    purgatory = clock.purgatory()
    bare = purgatory.try_complete_else_watch(Bare(1), ["a"])
    clock.advance(1)
    assert bare.expired
    assert bare.result() is None


async def test_try_complete_may_complete_the_operation_and_return_nothing(purgatory: Purgatory) -> None:
    class Silent(DelayedOperation[str]):
        def try_complete(self) -> Any:
            self.force_complete()

        def on_complete(self) -> str:
            return "said nothing"

    assert await purgatory.try_complete_else_watch(Silent(60), ["a"]) == "said nothing"


# Outcome


@pytest.mark.parametrize("offered", [False, True])
def test_there_is_no_outcome_before_the_end(offered: bool) -> None:
    gate = Gate(60)
    if offered:
        ManualClock().purgatory().try_complete_else_watch(gate, ["a"])
    with pytest.raises(asyncio.InvalidStateError):
        gate.result()
    with pytest.raises(asyncio.InvalidStateError):
        gate.exception()


def test_there_is_no_outcome_inside_on_complete_and_there_is_one_inside_on_expiration() -> None:
    results: list[str] = []

    def early() -> None:
        with pytest.raises(asyncio.InvalidStateError):
            gate.result()

    clock = ManualClock()
    gate = Gate(1, "late", completing=early, expiring=lambda: results.append(gate.result()))
    clock.purgatory().try_complete_else_watch(gate, ["a"])
    clock.advance(1)
    assert results == ["late"]
    assert gate.state is OperationState.EXPIRED


@pytest.mark.parametrize("value", [None, 0, "", ValueError("a value like any other"), Gate()], ids=repr)
def test_any_value_that_on_complete_returns_is_the_result(value: object) -> None:
    class Returning(DelayedOperation[object]):
        def try_complete(self) -> bool:
            return self.force_complete()

        def on_complete(self) -> object:
            return value

    operation = ManualClock().purgatory().try_complete_else_watch(Returning(1), ["a"])
    assert operation.result() is value
    assert operation.exception() is None


def test_the_outcome_of_a_withdrawn_operation_is_an_error_of_its_own() -> None:
    gate = Gate()
    gate.cancel()
    with pytest.raises(OperationWithdrawn, match=r"Gate was withdrawn by cancel\(\)"):
        gate.result()
    with pytest.raises(OperationWithdrawn, match=r"Gate was withdrawn by cancel\(\)"):
        gate.exception()


async def test_every_waiter_gets_the_same_exception_with_a_traceback_of_its_own(purgatory: Purgatory) -> None:
    gate = purgatory.try_complete_else_watch(Gate(completing=raising(ValueError("bad"))), ["a"])
    gate.force_complete()
    lengths = set()
    for _ in range(5):
        with pytest.raises(ValueError, match="bad") as caught:
            await gate
        assert caught.value is gate.exception()
        frames = traceback.extract_tb(caught.value.__traceback__)
        assert frames[-1].name == "raise_it"
        lengths.add(len(frames))
    assert len(lengths) == 1


# Awaiting


async def test_a_done_operation_can_be_awaited_repeatedly_without_yielding_to_the_loop(
    purgatory: Purgatory,
) -> None:
    gate = purgatory.try_complete_else_watch(Gate(opened=True, name="done"), ["a"])
    waiting = gate.__await__()
    with pytest.raises(StopIteration) as caught:
        next(waiting)
    assert caught.value.value == "done"
    assert [await gate for _ in range(3)] == ["done"] * 3


async def test_a_stop_iteration_from_a_hook_is_not_taken_for_a_result(purgatory: Purgatory) -> None:
    error = StopIteration("not a result")
    gate = purgatory.try_complete_else_watch(Gate(60, completing=raising(error)), ["a"])

    async def wait() -> str:
        return await gate

    waiting = asyncio.create_task(wait())
    await asyncio.sleep(0)
    gate.force_complete()
    # Python replaces a StopIteration that leaves a coroutine by RuntimeError (PEP 479).
    with pytest.raises(RuntimeError) as caught:
        await waiting
    assert caught.value.__cause__ is error
    with pytest.raises(RuntimeError):
        await gate
    assert gate.exception() is error


@pytest.mark.parametrize("end", [Gate.force_complete, Gate.cancel, Gate.run])
def test_a_done_operation_does_not_keep_its_purgatory_alive(end: Callable[[Gate], object]) -> None:
    purgatory = ManualClock().purgatory()
    kept = purgatory.try_complete_else_watch(Gate(60), ["a", "b"])
    ref = weakref.ref(purgatory.try_complete_else_watch(Gate(60), ["a"]))
    end(kept)
    del purgatory
    gc.collect()
    assert ref() is None
    assert kept.keys == ("a", "b")


# Subclasses


class Plain(DelayedOperation[int]):
    found = False

    def try_complete(self) -> bool:
        return self.found and self.force_complete()

    def on_complete(self) -> int:
        return 1


class Slotted(DelayedOperation[int]):
    __slots__ = ("found",)

    def __init__(self, timeout: float | None) -> None:
        super().__init__(timeout)
        self.found = False

    def try_complete(self) -> bool:
        return self.found and self.force_complete()

    def on_complete(self) -> int:
        return 1


class Counting:
    def count(self) -> int:
        self.counted = getattr(self, "counted", 0) + 1
        return self.counted


class MixedIn(Counting, Plain):
    def on_complete(self) -> int:
        return self.count()


class MixedInBehind(Plain, Counting):
    def on_complete(self) -> int:
        return self.count()


class OfSomething(DelayedOperation[T], Generic[T]):
    def __init__(self, timeout: float | None, something: T) -> None:
        super().__init__(timeout)
        self.something = something
        self.found = False

    def try_complete(self) -> bool:
        return self.found and self.force_complete()

    def on_complete(self) -> T:
        return self.something


class OfOne(OfSomething[int]):
    def __init__(self, timeout: float | None) -> None:
        super().__init__(timeout, 1)


class Abstract(DelayedOperation[int], ABC):
    found = False

    @abstractmethod
    def answer(self) -> int: ...

    def try_complete(self) -> bool:
        return self.found and self.force_complete()

    def on_complete(self) -> int:
        return self.answer()


class Concrete(Abstract):
    def answer(self) -> int:
        return 1


@dataclass
class Record(DelayedOperation[int]):
    """A dataclass compares by value, and so is not hashable."""

    seconds: float | None
    found: bool = False

    def __post_init__(self) -> None:
        super().__init__(self.seconds)

    def try_complete(self) -> bool:
        return self.found and self.force_complete()

    def on_complete(self) -> int:
        return 1


class Quarrelsome(Plain):
    def __eq__(self, other: object) -> bool:
        raise RuntimeError("do not compare me")

    def __hash__(self) -> int:
        raise RuntimeError("do not hash me")

    def __bool__(self) -> bool:
        raise RuntimeError("do not ask me")


class Empty(Plain):
    """An operation that is equal to everything, and whose truth value is False."""

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0

    def __len__(self) -> int:
        return 0


KINDS: list[type[Any]] = [
    Plain,
    Slotted,
    MixedIn,
    MixedInBehind,
    OfOne,
    Concrete,
    Record,
    Quarrelsome,
    Empty,
]


def is_exactly(found: list[DelayedOperation[Any]], expected: list[Any]) -> bool:
    return [id(operation) for operation in found] == [id(operation) for operation in expected]


@pytest.mark.parametrize("kind", KINDS)
def test_an_operation_of_any_ordinary_class_can_wait(kind: type[Any]) -> None:
    clock = ManualClock()
    purgatory = clock.purgatory()
    operations = [purgatory.try_complete_else_watch(kind(1 + n % 3), ["a", "b"]) for n in range(40)]
    assert is_exactly(purgatory.operations("a"), operations)
    assert is_exactly(purgatory.operations(), operations)
    for operation in operations[10:20]:
        operation.found = True
    assert purgatory.check_and_complete("b") == 10
    assert operations[30].cancel()
    left = operations[:10] + operations[20:30] + operations[31:]
    assert is_exactly(purgatory.operations("a"), left)
    assert is_exactly(purgatory.operations("b"), left)
    assert is_exactly(purgatory.cancel_for_key("a"), left)
    assert purgatory.statistics().pending == 0
    last = purgatory.try_complete_else_watch(kind(5), ["a"])
    clock.advance(5)
    assert last.expired
    assert {operation.result() for operation in [*operations[10:20], last]} == {1}


def test_a_class_with_an_abstract_method_is_refused() -> None:
    with pytest.raises(TypeError, match="Can't instantiate abstract class Abstract"):
        Abstract(None)  # type: ignore[abstract]


@pytest.mark.parametrize("kind", KINDS)
async def test_an_operation_of_any_ordinary_class_can_be_awaited_and_can_fail(
    purgatory: Purgatory, kind: type[Any]
) -> None:
    operation = purgatory.try_complete_else_watch(kind(0.001), ["a"])
    assert await operation == 1
    bad = type("Bad", (kind,), {"try_complete": raising(ValueError("bad"))})
    with pytest.raises((ValueError, TypeError)):
        await purgatory.try_complete_else_watch(bad(1), ["a"])


@pytest.mark.parametrize("kind", [k for k in KINDS if k is not Slotted])
def test_an_operation_of_any_ordinary_class_takes_weak_references(kind: type[Any]) -> None:
    operation = kind(1)
    ref = weakref.ref(operation)
    assert ref() is operation
    del operation
    assert ref() is None


def test_a_subclass_with_slots_takes_weak_references_if_it_declares_the_slot() -> None:
    class Asking(Slotted):
        __slots__ = ("__weakref__",)

    operation = Asking(1)
    ref = weakref.ref(operation)
    assert ref() is operation
    del operation
    assert ref() is None


def test_a_subclass_that_does_not_call_its_base_is_refused_with_a_reason_and_nothing_is_kept() -> None:
    class Forgetful(DelayedOperation[None]):
        def __init__(self) -> None:
            pass

        def try_complete(self) -> bool:
            raise NotImplementedError

    purgatory = ManualClock().purgatory()
    before = purgatory.statistics()
    with pytest.raises(TypeError, match=r"Forgetful.__init__ must call super\(\).__init__"):
        purgatory.try_complete_else_watch(Forgetful(), ["a"])
    assert purgatory.statistics() == before
    assert purgatory.operations() == []
    assert purgatory.try_complete_else_watch(Gate(opened=True), ["a"]).done


@pytest.mark.usefixtures("virtual_time")
async def test_a_hook_may_call_the_hook_of_its_base_class() -> None:
    class Child(Gate):
        def on_complete(self) -> str:
            return super().on_complete() + " and child"

        def on_expiration(self) -> None:
            super().on_expiration()
            self.ran.append("child")

    assert isinstance(asyncio.get_running_loop(), VirtualTimeLoop)
    async with Purgatory() as purgatory:
        child = purgatory.try_complete_else_watch(Child(5), ["a"])
        assert await child == "gate and child"
        assert child.ran == ["try_complete", "on_complete", "on_expiration", "child"]
