"""The watch lists, without a purgatory."""

from __future__ import annotations

import random
import weakref
from collections.abc import Hashable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from purgatory import OperationState
from purgatory._core.watch_list import CHUNK_LENGTH, Chunk
from purgatory._core.watchers import Watchers, keys_at
from purgatory.testing import ManualClock
from tests.core.invariants import check_watchers
from tests.operations import Gate


def watch_many(watchers: Watchers, many: int, key: str = "key") -> list[Gate]:
    gates = [Gate(name=str(number)) for number in range(many)]
    for gate in gates:
        park(watchers, gate, (key,))
    return gates


def park(watchers: Watchers, gate: Gate, keys: tuple[Hashable, ...]) -> None:
    """Watch `keys`, and mark the operation as the engine does then."""
    watchers.watch(gate, keys)
    gate._parked = watchers.watched
    gate._state = OperationState.PENDING


def leave(watchers: Watchers, gate: Gate) -> None:
    assert watchers.unwatch(gate) is None
    gate._parked = 0
    gate._state = OperationState.COMPLETED


def chunk_of(gate: Gate) -> Chunk:
    chunk = gate._watched
    assert isinstance(chunk, Chunk)
    return chunk


def names(watchers: Watchers, key: str = "key") -> list[str]:
    return [operation.name for operation in watchers.watching(key) if isinstance(operation, Gate)]


@pytest.mark.parametrize("many", [1, CHUNK_LENGTH, CHUNK_LENGTH + 1, 3 * CHUNK_LENGTH, 1_000])
@pytest.mark.parametrize("order", ["first to last", "last to first", "inside out", "at random"])
def test_operations_may_leave_in_any_order_and_the_others_keep_their_order(many: int, order: str) -> None:
    watchers = Watchers()
    watched = watch_many(watchers, many)
    leaving = list(watched)
    if order == "last to first":
        leaving.reverse()
    elif order == "inside out":
        leaving.sort(key=lambda gate: abs(int(gate.name) - many // 2))
    elif order == "at random":
        random.Random(many).shuffle(leaving)
    left = {gate.name for gate in watched}
    for gate in leaving:
        leave(watchers, gate)
        left.remove(gate.name)
        if len(left) % 37 == 0:
            check_watchers(watchers)
            assert names(watchers) == sorted(left, key=int)
        assert watchers.watched == len(left)
    assert "key" not in watchers


def test_a_hundred_thousand_operations_leave_from_the_head_while_others_come() -> None:
    watchers = Watchers()
    watched = watch_many(watchers, 100_000)
    for number, gate in enumerate(watched):
        leave(watchers, gate)
        if number % 1_000 == 0:
            park(watchers, Gate(name=f"new {number}"), ("key",))
    assert names(watchers) == [f"new {number}" for number in range(0, 100_000, 1_000)]


def test_only_the_first_of_equal_key_objects_is_kept() -> None:
    class Key:
        def __hash__(self) -> int:
            return 7

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Key)

    watchers = Watchers()
    first = Key()
    gates = [Gate()]
    park(watchers, gates[0], (first,))
    refs = []
    for _ in range(100):
        key, gate = Key(), Gate()
        refs.append(weakref.ref(key))
        park(watchers, gate, (key,))
        gates.append(gate)
    del key
    assert len(watchers) == 1
    assert {ref() for ref in refs} == {None}
    for gate in gates:
        [kept] = keys_at(gate._watched)
        assert kept is first
        leave(watchers, gate)
    assert len(watchers) == 0


def test_an_operation_that_is_alone_on_its_keys_needs_no_list() -> None:
    watchers = Watchers()
    gate = Gate()
    keys = ("a", "b", "c")
    park(watchers, gate, keys)
    assert [watchers.on(key) for key in keys] == [gate] * 3
    assert gate._watched is keys
    leave(watchers, gate)
    assert gate._watched is keys
    assert (len(watchers), watchers.watched) == (0, 0)


def test_a_second_operation_turns_any_key_of_the_first_into_a_list() -> None:
    for shared in ("a", "b", "c"):
        watchers = Watchers()
        one, other = Gate(name="one"), Gate(name="other")
        park(watchers, one, ("a", "b", "c"))
        park(watchers, other, ("x", shared, "y"))
        assert names(watchers, shared) == ["one", "other"]
        assert keys_at(one._watched) == ("a", "b", "c")
        assert keys_at(other._watched) == ("x", shared, "y")
        assert (len(watchers), watchers.watched) == (5, 6)
        leave(watchers, one)
        assert one._watched == ("a", "b", "c")
        assert names(watchers, shared) == ["other"]
        leave(watchers, other)
        assert other._watched == ("x", shared, "y")
        assert (len(watchers), watchers.watched) == (0, 0)


def test_a_shared_key_is_found_by_the_rules_of_a_dict() -> None:
    # These keys are equal but have different hashes, so a dict never compares them.
    class Key:
        def __init__(self, number: int) -> None:
            self.number = number

        def __hash__(self) -> int:
            return self.number

        def __eq__(self, other: object) -> bool:
            assert isinstance(other, Key), "a dict compares only what has the same hash"
            return True

    watchers = Watchers()
    one, other, third = Gate(), Gate(), Gate()
    first, second = Key(1), Key(2)
    park(watchers, one, (first, second))
    park(watchers, other, (Key(2),))
    park(watchers, third, (Key(1),))
    assert watchers.watching(first) == [one, third]
    assert watchers.watching(second) == [one, other]
    assert keys_at(one._watched) == (first, second)
    for gate in (one, other, third):
        leave(watchers, gate)
    assert (len(watchers), watchers.watched) == (0, 0)


@pytest.mark.parametrize("before", [0, 1, 2, CHUNK_LENGTH])
def test_a_key_named_twice_is_watched_once_whatever_the_number_of_watchers(before: int) -> None:
    watchers = Watchers()
    others = watch_many(watchers, before)
    gate = Gate(name="twice")
    park(watchers, gate, ("key", "else", "key", "key"))
    assert keys_at(gate._watched) == ("key", "else")
    assert watchers.watched == before + 2
    assert names(watchers) == [*map(str, range(before)), "twice"]
    only = Gate(name="only")
    park(watchers, only, ("key", "key"))
    assert keys_at(only._watched) == ("key",)
    for left in (gate, only, *others):
        leave(watchers, left)
    assert only._watched == ("key",)
    assert (len(watchers), watchers.watched) == (0, 0)


@pytest.mark.parametrize("shared", [(), ("a",), ("b",), ("a", "b")])
def test_an_operation_with_a_key_that_cannot_be_compared_watches_none(shared: tuple[str, ...]) -> None:
    class Incomparable:
        def __hash__(self) -> int:
            return hash("taken")

        def __eq__(self, other: object) -> bool:
            raise ArithmeticError("not with that")

    watchers = Watchers()
    taken = Gate()
    park(watchers, taken, ("taken", *shared))
    gate = Gate()
    with pytest.raises(ArithmeticError):
        park(watchers, gate, ("a", "b", Incomparable(), "c"))
    assert watchers.watched == len(watchers) == 1 + len(shared)
    assert watchers.watching("a") == ([taken] if "a" in shared else [])
    leave(watchers, taken)
    assert (len(watchers), watchers.watched) == (0, 0)


@pytest.mark.parametrize("order", [1, -1], ids=["first to last", "last to first"])
@pytest.mark.parametrize("many", [CHUNK_LENGTH, CHUNK_LENGTH + 1, 5 * CHUNK_LENGTH])
def test_each_of_many_keys_has_the_operations_that_share_it(many: int, order: int) -> None:
    watchers = Watchers()
    gates = [Gate(name=str(number)) for number in range(3)]
    keys = [tuple(range(many)), tuple(range(many // 2, 2 * many)), (3, many, 3 * many)]
    for gate, watched in zip(gates, keys, strict=True):
        park(watchers, gate, watched)
    left = dict(zip(gates, keys, strict=True))
    for leaving in gates[::order]:
        leave(watchers, leaving)
        check_watchers(watchers)
        assert leaving._watched == left.pop(leaving)
        for key in range(3 * many + 1):
            assert watchers.watching(key) == [gate for gate in left if key in left[gate]]
        assert watchers.watched == sum(map(len, left.values()))
        assert [keys_at(gate._watched) for gate in left] == list(left.values())
    assert len(watchers) == 0


def test_a_second_watcher_compares_none_of_the_other_keys_of_the_first() -> None:
    class Key:
        comparable = True

        def __hash__(self) -> int:
            return 1_000

        def __eq__(self, other: object) -> bool:
            if not Key.comparable:
                raise ArithmeticError("not now")
            return self is other

    watchers = Watchers()
    keys = (*range(CHUNK_LENGTH), Key(), Key(), "last")
    alone = Gate()
    park(watchers, alone, keys)
    Key.comparable = False
    second = Gate()
    park(watchers, second, (3,))
    Key.comparable = True
    check_watchers(watchers)
    assert watchers.watched == len(watchers) + 1 == len(keys) + 1
    assert watchers.watching(3) == [alone, second]
    assert keys_at(alone._watched) == keys
    leave(watchers, alone)
    assert watchers.watching(3) == [second]
    leave(watchers, second)
    assert (len(watchers), watchers.watched) == (0, 0)


def test_a_chunk_that_has_left_the_list_still_leads_forward_and_not_back() -> None:
    watchers = Watchers()
    watched = watch_many(watchers, 4 * CHUNK_LENGTH)
    first, second, third, fourth = (chunk_of(watched[n * CHUNK_LENGTH + 1]) for n in range(4))
    for gate in watched[CHUNK_LENGTH : 2 * CHUNK_LENGTH]:
        leave(watchers, gate)
    assert second.following is third
    assert second.previous is None
    assert first.following is third
    assert third.previous is first
    for gate in watched[:CHUNK_LENGTH]:
        leave(watchers, gate)
    # The first chunk stays, although it is empty.
    assert first.following is third
    assert first.previous is fourth
    assert watchers.on("key") is first
    for gate in watched[3 * CHUNK_LENGTH :]:
        leave(watchers, gate)
    assert first.previous is third
    assert third.following is None
    assert fourth.previous is None
    assert names(watchers) == [gate.name for gate in watched[2 * CHUNK_LENGTH : 3 * CHUNK_LENGTH]]


ACTIONS = st.lists(
    st.tuples(st.sampled_from(["watch", "watch", "watch", "unwatch", "unwatch burst"]), st.integers(0, 999)),
    max_size=300,
)


@given(actions=ACTIONS)
def test_a_walk_visits_in_order_every_operation_that_is_still_ahead_of_it(
    actions: list[tuple[str, int]],
) -> None:
    watchers = Watchers()
    watched = watch_many(watchers, 100)
    walk: Chunk | None = chunk_of(watched[1])
    met: list[str] = []
    come = 100
    for action, number in actions:
        if action == "watch":
            for _ in range(number % 5):
                gate = Gate(name=str(come))
                come += 1
                park(watchers, gate, ("key",))
                watched.append(gate)
        else:
            for _ in range(min(len(watched), 1 if action == "unwatch" else number % 40)):
                leave(watchers, watched.pop(number % len(watched)))
        assert names(watchers) == [gate.name for gate in watched]
        assert watchers.watched == len(watched)
        assert ("key" in watchers) == bool(watched)
        if walk is not None and number % 3 == 0:
            met += [operation.name for operation in walk.operations if isinstance(operation, Gate)]
            walk = walk.following
    assert met == sorted(set(met), key=int)
    ahead: set[str] = set()
    last = -1 if walk is None or not met else int(met[-1])
    while walk is not None:
        ahead.update(operation.name for operation in walk.operations if isinstance(operation, Gate))
        walk = walk.following
    assert all(int(name) > last for name in ahead)
    # An operation that was there from the start, is still there and has not been visited lies ahead.
    assert {gate.name for gate in watched if last < int(gate.name) < 100} <= ahead | set(met)


@pytest.mark.parametrize("many", [0, 1, CHUNK_LENGTH, CHUNK_LENGTH + 1, 100])
@pytest.mark.parametrize("limit", [1, 15, 16, 17, 99, 100, 1_000])
def test_bounded_inspection_of_a_key_returns_the_first_operations(many: int, limit: int) -> None:
    purgatory = ManualClock().purgatory()
    watched = [purgatory.try_complete_else_watch(Gate(), ["key"]) for _ in range(many)]
    assert purgatory.watching("key", limit) == watched[:limit]
    counted = purgatory.count_watching("key", limit)
    assert counted == many if many < limit else limit <= counted < limit + CHUNK_LENGTH


def test_bounded_inspection_of_the_keys_returns_the_first_and_the_last_each_once() -> None:
    purgatory = ManualClock().purgatory()
    for key in range(10):
        purgatory.try_complete_else_watch(Gate(), [key])
    for limit in range(1, 10):
        seen = purgatory.watched_keys(limit)
        assert len(set(seen)) == limit
        assert set(seen) == {*range(limit - limit // 2), *range(10 - limit // 2, 10)}
    assert purgatory.watched_keys(10) == purgatory.watched_keys(11) == list(range(10))
