"""More keys for a pending operation: `watch_also`."""

from __future__ import annotations

import random
from typing import Any

import pytest

from purgatory import DelayedValue, OperationState, Purgatory, PurgatoryClosed
from purgatory.testing import ManualClock
from tests.core.invariants import check_watchers
from tests.core.keys import BadKey, Key
from tests.core.purgatories import nothing_is_left
from tests.operations import Gate, Stop, raising

PENDING, COMPLETED = OperationState.PENDING, OperationState.COMPLETED


def test_a_pending_operation_watches_more_keys(held: Purgatory) -> None:
    gate = held.try_complete_else_watch(Gate(), ["a"])
    assert held.watch_also(gate, ["b", "a", "c", "b"])
    assert gate.keys == ("a", "b", "c")
    assert held.statistics().watched == 3
    assert [held.operations(key) for key in "abc"] == [[gate]] * 3
    gate.opened = True
    assert held.check_and_complete("c") == 1
    assert nothing_is_left(held)


def test_it_is_tried_first_so_no_change_is_missed(held: Purgatory) -> None:
    gate = held.try_complete_else_watch(Gate(), ["a"])
    gate.opened = True
    assert not held.watch_also(gate, ["b"])
    assert gate.state is COMPLETED
    assert gate.ran == ["try_complete", "try_complete", "on_complete"]
    assert nothing_is_left(held)


@pytest.mark.parametrize("end", ["complete", "fail", "cancel"])
def test_it_is_false_for_an_operation_that_is_done(held: Purgatory, end: str) -> None:
    gate = held.try_complete_else_watch(Gate(), ["a"])
    {"complete": gate.force_complete, "fail": lambda: gate.fail(ValueError()), "cancel": gate.cancel}[end]()
    if end == "fail":
        assert gate.exception() is not None
    assert not held.watch_also(gate, ["b"])
    assert nothing_is_left(held)


def test_it_is_refused_for_an_operation_that_is_not_pending_here(clock: ManualClock, held: Purgatory) -> None:
    other = clock.purgatory("other")
    for gate in (Gate(), other.try_complete_else_watch(Gate(), ["a"])):
        with pytest.raises(RuntimeError, match="is not pending in purgatory 'purgatory'"):
            held.watch_also(gate, ["b"])


@pytest.mark.parametrize(("keys", "error"), [("ab", TypeError), ([[]], TypeError), (b"ab", TypeError)])
def test_wrong_keys_change_nothing(held: Purgatory, keys: Any, error: type[Exception]) -> None:
    gate = held.try_complete_else_watch(Gate(), ["a"])
    with pytest.raises(error):
        held.watch_also(gate, keys)
    assert gate.keys == ("a",)
    assert held.watch_also(gate, [])
    assert gate.keys == ("a",)


@pytest.mark.parametrize("hashes", range(4))
@pytest.mark.parametrize("shared", [True, False])
def test_a_key_that_raises_leaves_the_operation_as_it_was(held: Purgatory, shared: bool, hashes: int) -> None:
    gate = held.try_complete_else_watch(Gate(), ["a"])
    first, bad = Key("first", 1), Key("bad", 2)
    others = [held.try_complete_else_watch(Gate(), [first, bad]) for _ in range(2 if shared else 0)]
    hashed: list[None] = []

    def hash_it() -> None:
        hashed.append(None)
        if len(hashed) > hashes:
            raise BadKey

    bad.hashing = hash_it
    with pytest.raises(BadKey):
        held.watch_also(gate, [first, bad])
    bad.hashing = None
    assert gate.keys == ("a",)
    assert held.statistics().watched == 1 + 2 * len(others)
    check_watchers(held._engine.watchers)
    assert held.watch_also(gate, [first, bad])
    gate.opened = True
    assert held.check_and_complete(bad) == 1


def test_on_a_new_key_it_stands_behind_those_who_wait_already(held: Purgatory) -> None:
    early = held.try_complete_else_watch(Gate(name="early"), ["other"])
    late = [held.try_complete_else_watch(Gate(name=str(n)), ["key"]) for n in range(40)]
    assert held.watch_also(early, ["key"])
    later = [held.try_complete_else_watch(Gate(name=str(n)), ["key"]) for n in range(40, 60)]
    assert held.operations("key") == [*late, early, *later]
    assert held.operations("other") == [early]
    order: list[str] = []
    for gate in [*late, early, *later]:
        gate.opened = True
        gate.completing = lambda gate=gate: order.append(gate.name)
    assert held.check_and_complete("key") == 61
    assert order == [*map(str, range(40)), "early", *map(str, range(40, 60))]
    assert nothing_is_left(held)


async def test_a_sweep_in_slices_passes_by_nobody() -> None:
    async with Purgatory(slice_seconds=1e-9) as purgatory:
        early = [purgatory.try_complete_else_watch(Gate(), ["other"]) for _ in range(3)]
        gates: list[Gate] = []
        for gate in early:
            gates += [purgatory.try_complete_else_watch(Gate(), ["key"]) for _ in range(7)]
            purgatory.watch_also(gate, ["key"])
        for gate in (*early, *gates):
            gate.opened = True
        assert await purgatory.sweep("key") == 24
        assert purgatory.statistics().slices > 1


def test_its_own_try_may_ask_for_more_keys(held: Purgatory) -> None:
    gate = Gate()
    gate.trying = lambda: gate.state is PENDING and held.watch_also(gate, ["more"])
    held.try_complete_else_watch(gate, ["a"])
    assert held.check_and_complete("a") == 0
    assert gate.keys == ("a", "more")
    gate.opened = True
    assert held.check_and_complete("more") == 1


def test_operations_that_ask_for_more_keys_for_each_other_are_each_tried_once(held: Purgatory) -> None:
    gates = [held.try_complete_else_watch(Gate(), ["a"]) for _ in range(2)]
    gates[0].trying = lambda: held.watch_also(gates[1], ["more"])
    gates[1].trying = lambda: held.watch_also(gates[0], ["more"])
    assert held.watch_also(gates[0], ["b"])
    assert [gate.ran.count("try_complete") for gate in gates] == [2, 2]
    assert [gate.keys for gate in gates] == [("a", "more", "b"), ("a", "more")]


def test_a_try_that_raises_fails_the_operation(held: Purgatory) -> None:
    gate = held.try_complete_else_watch(Gate(), ["a"])
    gate.trying = raising(ValueError("bad"))
    assert not held.watch_also(gate, ["b"])
    assert isinstance(gate.exception(), ValueError)
    assert nothing_is_left(held)


def test_the_method_of_a_key_that_ends_the_operation_meanwhile_leaves_nothing_behind(held: Purgatory) -> None:
    gate = held.try_complete_else_watch(Gate(), ["a"])
    key = Key("key", 1)
    key.hashing = gate.cancel
    assert not held.watch_also(gate, ["b", key])
    key.hashing = None
    assert nothing_is_left(held)


def test_it_cannot_be_called_in_the_method_of_a_key(held: Purgatory) -> None:
    gate = held.try_complete_else_watch(Gate(), ["a"])
    key = Key("key", 1)
    other = held.try_complete_else_watch(Gate(), [key])

    def widen() -> None:
        with pytest.raises(RuntimeError, match=r"watch_also\(\) cannot be called in the method of a key"):
            held.watch_also(gate, ["b"])

    key.hashing = widen
    other.cancel()
    key.hashing = None
    assert gate.keys == ("a",)


class Keys:
    """An observer of keys."""

    def __init__(self) -> None:
        self.told: list[tuple[str, object]] = []
        self.refused: object = None

    def key_watched(self, key: object) -> None:
        if key == self.refused:
            raise ValueError("no")
        self.told.append(("watched", key))

    def key_left(self, key: object) -> None:
        self.told.append(("left", key))


def test_an_observer_of_keys_is_told_of_the_new_ones_and_may_refuse_them(held: Purgatory) -> None:
    keys = Keys()
    held.observe_keys(keys)
    gate = held.try_complete_else_watch(Gate(), ["a"])
    held.watch_also(gate, ["a", "b"])
    assert keys.told == [("watched", "a"), ("watched", "b")]
    keys.refused = "d"
    with pytest.raises(ValueError, match="no"):
        held.watch_also(gate, ["c", "d"])
    assert gate.keys == ("a", "b")
    assert keys.told[2:4] == [("watched", "c"), ("left", "c")]
    gate.cancel()
    assert keys.told[-2:] == [("left", "a"), ("left", "b")]
    # The observer has nothing to do with operations that have no key.
    before = len(keys.told)
    held.try_complete_else_watch(DelayedValue[int](None)).cancel()
    assert len(keys.told) == before


def test_an_observer_of_keys_that_refuses_and_is_interrupted_leaves_the_operation_as_it_was(
    held: Purgatory,
) -> None:
    class Refusing:
        def key_watched(self, key: object) -> None:
            if key == "b":
                raise ValueError("bad")

        def key_left(self, key: object) -> None:
            if key == "b":
                raise Stop

    gate = held.try_complete_else_watch(Gate(), ["a"])
    held.observe_keys(Refusing())
    with pytest.raises(Stop):
        held.watch_also(gate, ["b"])
    assert gate.keys == ("a",)
    check_watchers(held._engine.watchers)
    gate.opened = True
    assert held.check_and_complete("a") == 1
    assert nothing_is_left(held)


async def test_a_closed_purgatory_has_nothing_to_watch() -> None:
    async with Purgatory() as purgatory:
        gate = purgatory.try_complete_else_watch(Gate(), ["a"])
    assert not purgatory.watch_also(gate, ["b"])
    with pytest.raises(PurgatoryClosed):
        purgatory.try_complete_else_watch(Gate(), ["a"])


@pytest.mark.parametrize("seed", range(10))
def test_random_keys_are_watched_as_a_model_says(held: Purgatory, seed: int) -> None:
    chance = random.Random(seed)
    model: dict[Gate, list[int]] = {}
    order: dict[int, list[Gate]] = {key: [] for key in range(6)}
    for _ in range(300):
        if chance.random() < 0.4 or not model:
            keys = chance.sample(range(6), chance.randint(1, 3))
            gate = held.try_complete_else_watch(Gate(), keys)
            model[gate] = keys
        elif chance.random() < 0.7:
            gate = chance.choice(list(model))
            asked = chance.sample(range(6), chance.randint(1, 3))
            keys = [key for key in asked if key not in model[gate]]
            assert held.watch_also(gate, asked)
            model[gate] += keys
        else:
            gate, keys = chance.choice(list(model)), []
            gate.cancel()
            for key in model.pop(gate):
                order[key].remove(gate)
        for key in keys:
            order[key].append(gate)
        assert all(held.operations(key) == order[key] for key in order)
        assert all(set(each.keys) == set(keys) for each, keys in model.items())
        check_watchers(held._engine.watchers)
    for gate in list(model):
        gate.cancel()
    assert nothing_is_left(held)
