"""One value, or one error, for everybody who waits for a key; and operations that need no key."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from purgatory import DelayedQuorum, DelayedValue, OperationState, Purgatory
from purgatory.testing import ManualClock
from tests.core.invariants import check_watchers
from tests.core.purgatories import nothing_is_left
from tests.operations import Gate, Stop, a_few_turns, raising

COMPLETED, FAILED, CANCELLED = OperationState.COMPLETED, OperationState.FAILED, OperationState.CANCELLED


class Price(DelayedValue[int]):
    """A value of its own class."""


def test_a_value_goes_to_everybody_who_waits_for_the_key_in_order(held: Purgatory) -> None:
    order: list[int] = []
    gates = [held.try_complete_else_watch(Gate(), ["a", n]) for n in range(40)]
    for n, gate in enumerate(gates):
        gate.completing = lambda n=n: order.append(n)
    other = held.try_complete_else_watch(Gate(), ["b"])
    assert held.complete_for_key("a", "value") == 40
    assert [gate.result() for gate in gates] == ["value"] * 40
    assert order == list(range(40))
    assert not other.done
    assert held.complete_for_key("a", "value") == 0
    other.cancel()
    assert nothing_is_left(held)


async def test_an_error_goes_to_everybody_who_waits_for_the_key(purgatory: Purgatory) -> None:
    waits = [
        asyncio.ensure_future(purgatory.try_complete_else_watch(DelayedValue[int](None), ["a"]))
        for _ in range(3)
    ]
    await a_few_turns()
    error = LookupError("gone")
    assert purgatory.fail_for_key("a", error) == 3
    assert await asyncio.gather(*waits, return_exceptions=True) == [error] * 3
    assert purgatory.statistics().failed == 3


async def test_an_error_that_one_of_them_does_not_see_is_reported_for_that_one(
    purgatory: Purgatory, reported: list[dict[str, Any]]
) -> None:
    seen = purgatory.try_complete_else_watch(DelayedValue[int](None), ["a"])
    purgatory.try_complete_else_watch(DelayedValue[int](None), ["a"])
    error = LookupError("gone")
    assert purgatory.fail_for_key("a", error) == 2
    assert seen.exception() is error
    await a_few_turns()
    assert [context["exception"] for context in reported] == [error]


def test_a_kind_leaves_the_others_alone(held: Purgatory) -> None:
    gate = held.try_complete_else_watch(Gate(), ["tea"])
    price = held.try_complete_else_watch(Price(None), ["tea"])
    value = held.try_complete_else_watch(DelayedValue[int](None), ["tea"])
    assert held.complete_for_key("tea", 3, Price) == 1
    assert (price.result(), value.done, gate.done) == (3, False, False)
    assert held.complete_for_key("tea", 4, DelayedValue[int]) == 1
    assert held.fail_for_key("tea", LookupError("gone"), Gate) == 1
    assert isinstance(gate.exception(), LookupError)
    assert nothing_is_left(held)


async def test_tasks_that_are_cancelled_already_get_nothing(purgatory: Purgatory) -> None:
    values = [purgatory.try_complete_else_watch(DelayedValue[int](None), ["a"]) for _ in range(2)]
    waits = [asyncio.ensure_future(value) for value in values]
    await a_few_turns()
    waits[0].cancel()
    assert purgatory.complete_for_key("a", 7) == 1
    await asyncio.wait(waits)
    assert [value.state for value in values] == [CANCELLED, COMPLETED]


def test_a_hook_that_raises_fails_its_operation_and_no_other(held: Purgatory) -> None:
    gates = [held.try_complete_else_watch(Gate(), ["a"]) for _ in range(3)]
    gates[1].completing = raising(ValueError("bad"))
    assert held.complete_for_key("a", 7) == 3
    assert [gate.state for gate in gates] == [COMPLETED, FAILED, COMPLETED]
    assert isinstance(gates[1].exception(), ValueError)


def test_an_interruption_leaves_the_books_right(held: Purgatory) -> None:
    gates = [held.try_complete_else_watch(Gate(), ["a"]) for _ in range(3)]
    gates[1].completing = raising(Stop("now"))
    with pytest.raises(Stop):
        held.complete_for_key("a", 7)
    assert [gate.done for gate in gates] == [True, True, False]
    assert held.complete_for_key("a", 8) == 1
    assert nothing_is_left(held)


@pytest.mark.parametrize("error", [None, "bad", ValueError, StopIteration("bad"), KeyboardInterrupt()])
def test_what_is_no_exception_is_refused_even_when_nobody_waits(held: Purgatory, error: Any) -> None:
    with pytest.raises(TypeError, match="an operation fails with an Exception"):
        held.fail_for_key("a", error)


async def test_a_closed_purgatory_has_nobody_to_hand_a_value_to() -> None:
    async with Purgatory() as purgatory:
        pass
    assert purgatory.complete_for_key("a", 1) == purgatory.fail_for_key("a", ValueError("bad")) == 0
    assert Purgatory().complete_for_key("a", 1) == 0


# Operations without a key


async def test_operations_that_nobody_checks_need_no_key(purgatory: Purgatory) -> None:
    value = purgatory.try_complete_else_watch(DelayedValue[int](60))
    quorum = purgatory.try_complete_else_watch(DelayedQuorum(1, ["a"], 60))
    assert (value.keys, quorum.keys) == ((), ())
    assert repr(value) == "<DelayedValue pending timeout=60.0 s keys=[] tried once>"
    pending: list[object] = [value, quorum]
    assert purgatory.operations() == pending
    # They are together on one list.
    figures = purgatory.statistics()
    assert (figures.watched, figures.keys, purgatory.watched_keys(9)) == (2, 1, [])
    value.complete(7)
    quorum.acknowledge("a")
    assert (await value, await quorum) == (7, ("a",))
    assert nothing_is_left(purgatory)


@pytest.mark.parametrize("keys", [[], [()], [[]]])
def test_an_operation_with_a_condition_needs_a_key(held: Purgatory, keys: list[Any]) -> None:
    with pytest.raises(ValueError, match="an operation must watch at least one key"):
        held.try_complete_else_watch(Gate(), *keys)
    assert nothing_is_left(held)


async def test_closing_ends_operations_without_a_key() -> None:
    async with Purgatory() as purgatory:
        value = purgatory.try_complete_else_watch(DelayedValue[int](60))
    assert value.expired
    assert not value.timed_out


def test_an_operation_without_a_key_may_be_given_one(held: Purgatory) -> None:
    value = held.try_complete_else_watch(DelayedValue[int](60))
    assert held.watch_also(value, ["a"])
    assert value.keys == ("a",)
    assert held.complete_for_key("a", 7) == 1
    assert nothing_is_left(held)


@pytest.mark.parametrize("many", [1, 2, 40])
def test_operations_without_a_key_that_are_given_some_stay_in_their_lists(held: Purgatory, many: int) -> None:
    values = [held.try_complete_else_watch(DelayedValue[int](60)) for _ in range(many)]
    assert held.statistics().watched == many
    for number, value in enumerate(values):
        held.watch_also(value, ["a", "b"])
        assert held.statistics().watched == many + 2 * (number + 1)
        check_watchers(held._engine.watchers)
    for value in values:
        value.cancel()
        check_watchers(held._engine.watchers)
    assert nothing_is_left(held)


def test_the_timeout_of_a_value_without_a_key_names_none(clock: ManualClock, held: Purgatory) -> None:
    value = held.try_complete_else_watch(DelayedValue[int](5))
    clock.advance(6)
    with pytest.raises(TimeoutError, match=r"^no value came within 5.0 s$"):
        value.result()
