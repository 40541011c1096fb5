"""The seam of the relay: a purgatory tells which keys somebody waits for."""

from __future__ import annotations

from collections.abc import Callable, Hashable

import pytest

from purgatory import OperationState, Purgatory, PurgatoryFull
from purgatory.testing import ManualClock
from tests.core.invariants import check_watchers
from tests.core.keys import BadKey, Key
from tests.core.purgatories import nothing_is_left
from tests.operations import Gate, Stop, raising


class Told:
    """Notes what it is told. `watching` and `leaving` are called with each key."""

    def __init__(self) -> None:
        self.keys: list[Hashable] = []
        self.log: list[tuple[str, Hashable]] = []
        self.watching: Callable[[Hashable], object] | None = None
        self.leaving: Callable[[Hashable], object] | None = None

    def key_watched(self, key: Hashable) -> None:
        self.log.append(("watched", key))
        if self.watching is not None:
            self.watching(key)
        self.keys.append(key)

    def key_left(self, key: Hashable) -> None:
        self.log.append(("left", key))
        if key in self.keys:
            self.keys.remove(key)
        if self.leaving is not None:
            self.leaving(key)


@pytest.fixture
def told(held: Purgatory) -> Told:
    told = Told()
    held.observe_keys(told)
    return told


def test_the_first_and_the_last_watcher_of_a_key_are_told(held: Purgatory, told: Told) -> None:
    first = held.try_complete_else_watch(Gate(), ["a", "b", "a"])
    second = held.try_complete_else_watch(Gate(), ["b", "c"])
    assert told.log == [("watched", "a"), ("watched", "b"), ("watched", "c")]
    told.log.clear()
    first.cancel()
    assert told.log == [("left", "a")]
    second.force_complete()
    assert told.log == [("left", "a"), ("left", "b"), ("left", "c")]
    held.try_complete_else_watch(Gate(), ["a"])
    assert told.keys == ["a"]


def test_a_key_that_one_of_many_leaves_is_still_watched(held: Purgatory, told: Told) -> None:
    gates = [held.try_complete_else_watch(Gate(), ["a"]) for _ in range(40)]
    for gate in gates[:-1]:
        gate.cancel()
    assert told.log == [("watched", "a")]
    gates[-1].cancel()
    assert told.log == [("watched", "a"), ("left", "a")]


def test_an_operation_that_need_not_wait_is_not_told(held: Purgatory, told: Told) -> None:
    held.try_complete_else_watch(Gate(opened=True), ["a"])
    held.try_complete_else_watch(Gate(0), ["b"])
    assert told.log == []


def test_each_way_of_ending_is_told(clock: ManualClock, held: Purgatory, told: Told) -> None:
    held.try_complete_else_watch(Gate(1), ["expires"])
    held.try_complete_else_watch(Gate(), ["is withdrawn"])
    held.try_complete_else_watch(Gate(completing=raising(ValueError("bad"))), ["fails"]).force_complete()
    with pytest.raises(ExceptionGroup):
        clock.advance(2)
    held.cancel_for_key("is withdrawn")
    assert told.keys == []
    assert nothing_is_left(held)


async def test_closing_is_told(purgatory: Purgatory) -> None:
    told = Told()
    purgatory.observe_keys(told)
    for key in range(10):
        purgatory.try_complete_else_watch(Gate(), [key, "all"])
    assert len(told.keys) == 11
    await purgatory.aclose()
    assert told.keys == []


def test_an_operation_is_refused_whole_when_its_key_is(held: Purgatory, told: Told) -> None:
    def refuse(key: Hashable) -> None:
        if key == "bad":
            raise TypeError("this key cannot be shared")

    told.watching = refuse
    gate = Gate(30)
    with pytest.raises(TypeError, match="cannot be shared"):
        held.try_complete_else_watch(gate, ["good", "bad", "other"])
    assert gate.state is OperationState.NEW
    assert nothing_is_left(held)
    assert told.keys == []
    assert ("left", "good") in told.log
    told.watching = None
    assert not held.try_complete_else_watch(gate, ["good", "bad"]).done
    assert told.keys == ["good", "bad"]


def test_a_key_that_others_watch_stays_theirs_when_a_further_one_is_refused(
    held: Purgatory, told: Told
) -> None:
    held.try_complete_else_watch(Gate(), ["shared"])
    told.watching = raising_for("bad", Stop())
    with pytest.raises(Stop):
        held.try_complete_else_watch(Gate(1), ["shared", "bad"])
    assert told.keys == ["shared"]
    check_watchers(held._engine.watchers)
    assert held.statistics().watched == 1


def raising_for(bad: Hashable, error: BaseException) -> Callable[[Hashable], None]:
    def raise_it(key: Hashable) -> None:
        if key == bad:
            raise error

    return raise_it


def test_a_full_purgatory_tells_nothing(clock: ManualClock) -> None:
    held, told = clock.purgatory(max_pending=1), Told()
    held.observe_keys(told)
    held.try_complete_else_watch(Gate(), ["a"])
    with pytest.raises(PurgatoryFull):
        held.try_complete_else_watch(Gate(), ["b"])
    assert told.log == [("watched", "a")]


def test_an_exception_about_a_key_that_is_left_is_reported(
    clock: ManualClock, held: Purgatory, told: Told
) -> None:
    told.leaving = raising_for("a", ValueError("bad"))
    gate = held.try_complete_else_watch(Gate(), ["a", "b"])
    gate.force_complete()
    assert gate.done
    assert told.keys == []
    with pytest.raises(ExceptionGroup) as raised:
        clock.advance(0)
    assert [str(error) for error in raised.value.exceptions] == ["bad"]


def test_a_base_exception_about_a_key_that_is_left_goes_up_when_the_books_are_right(
    clock: ManualClock, held: Purgatory, told: Told
) -> None:
    told.leaving = raising_for("a", Stop())
    gate = held.try_complete_else_watch(Gate(5), ["a", "b"])
    with pytest.raises(Stop):
        gate.force_complete()
    assert nothing_is_left(held)
    clock.advance(0)
    assert gate.ran == ["try_complete", "on_complete"]


def test_what_the_observer_asks_for_is_done_after_the_parking(held: Purgatory, told: Told) -> None:
    gate = Gate()

    def meddle(key: Hashable) -> None:
        if key == "a":
            gate.opened = True
            held.check_and_complete("a")
            held.try_complete_else_watch(Gate(name="other"), ["b"])

    told.watching = meddle
    held.try_complete_else_watch(gate, ["a"])
    assert gate.state is OperationState.COMPLETED
    assert told.keys == ["b"]
    check_watchers(held._engine.watchers)


def test_an_operation_that_the_observer_withdraws_leaves_its_keys(held: Purgatory, told: Told) -> None:
    gate = Gate(10)
    told.watching = lambda key: gate.cancel()
    held.try_complete_else_watch(gate, ["a", "b"])
    assert gate.state is OperationState.CANCELLED
    assert nothing_is_left(held)
    assert told.keys == []


def test_a_key_that_raises_when_it_is_left_is_reported(
    clock: ManualClock, held: Purgatory, told: Told
) -> None:
    key = Key("bad", 7)
    gate = held.try_complete_else_watch(Gate(), [key])
    key.hashing = raising(BadKey("hash"))
    gate.force_complete()
    assert gate.done
    with pytest.raises(ExceptionGroup) as raised:
        clock.advance(0)
    assert {type(error) for error in raised.value.exceptions} == {BadKey}
    key.hashing = None


def test_there_is_one_observer_at_a_time(held: Purgatory, told: Told) -> None:
    with pytest.raises(RuntimeError, match="it can have one only"):
        held.observe_keys(Told())
    held.observe_keys(None)
    held.try_complete_else_watch(Gate(), ["a"])
    assert told.log == []
    held.observe_keys(Told())


def test_an_operation_that_is_parked_later_fails_when_its_key_is_refused(
    clock: ManualClock, held: Purgatory, told: Told
) -> None:
    late = Gate()

    def offer_one(key: Hashable) -> None:
        if key == "a":
            held.try_complete_else_watch(late, ["bad"])
        else:
            raise TypeError("refused")

    told.watching = offer_one
    held.try_complete_else_watch(Gate(), ["a"])
    assert late.state is OperationState.FAILED
    assert isinstance(late.exception(), TypeError)
    assert told.keys == ["a"]


def test_a_key_that_was_bad_for_a_while_is_told_when_it_is_watched_again(
    clock: ManualClock, held: Purgatory, told: Told
) -> None:
    key = Key("bad", 7)
    gates = [held.try_complete_else_watch(Gate(), [key]) for _ in range(2)]
    key.hashing = raising(BadKey("hash"))
    for gate in gates:
        gate.cancel()
    with pytest.raises(ExceptionGroup):
        clock.advance(0)
    key.hashing = None
    told.log.clear()
    held.try_complete_else_watch(Gate(), [key, "b"])
    assert told.log == [("watched", key), ("watched", "b")]
