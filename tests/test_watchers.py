"""The watch lists by themselves."""

from __future__ import annotations

import random
import weakref

import pytest
from hypothesis import given
from hypothesis import strategies as st

from purgatory.watchers import STRETCH_LENGTH, Stretch, Watchers
from tests.operations import Gate

Watched = tuple[Gate, Stretch]


def watch_many(watchers: Watchers, many: int, key: str = "key") -> list[Watched]:
    gates = [Gate(name=str(number)) for number in range(many)]
    return [(gate, watchers.watch(gate, key)) for gate in gates]


def names(watchers: Watchers, key: str = "key") -> list[str]:
    return [operation.name for operation in watchers.watching(key) if isinstance(operation, Gate)]


def test_a_key_that_nobody_watches_is_not_there() -> None:
    watchers = Watchers()
    assert "key" not in watchers
    assert len(watchers) == 0
    assert watchers.watched == 0
    assert watchers.first("key") is None
    assert watchers.watching("key") == []
    assert watchers.watched_keys() == []


def test_the_last_one_to_leave_takes_the_key_along() -> None:
    watchers = Watchers()
    gate = Gate()
    stretch = watchers.watch(gate, "key")
    assert "key" in watchers
    assert (len(watchers), watchers.watched) == (1, 1)
    watchers.unwatch(gate, stretch)
    assert "key" not in watchers
    assert (len(watchers), watchers.watched) == (0, 0)


@pytest.mark.parametrize("many", [1, STRETCH_LENGTH, STRETCH_LENGTH + 1, 3 * STRETCH_LENGTH, 1_000])
@pytest.mark.parametrize("order", ["first to last", "last to first", "inside out", "at random"])
def test_they_leave_in_any_order_and_the_others_stay_in_theirs(many: int, order: str) -> None:
    watchers = Watchers()
    watched = watch_many(watchers, many)
    leaving = list(watched)
    if order == "last to first":
        leaving.reverse()
    elif order == "inside out":
        leaving.sort(key=lambda pair: abs(int(pair[0].name) - many // 2))
    elif order == "at random":
        random.Random(many).shuffle(leaving)
    left = {gate.name for gate, _ in watched}
    for gate, stretch in leaving:
        watchers.unwatch(gate, stretch)
        left.remove(gate.name)
        if len(left) % 37 == 0:
            assert names(watchers) == sorted(left, key=int)
        assert watchers.watched == len(left)
    assert "key" not in watchers


def test_a_hundred_thousand_leave_from_the_head_while_others_come() -> None:
    watchers = Watchers()
    watched = watch_many(watchers, 100_000)
    for number, (gate, stretch) in enumerate(watched):
        watchers.unwatch(gate, stretch)
        if number % 1_000 == 0:
            watchers.watch(Gate(name=f"new {number}"), "key")
    assert names(watchers) == [f"new {number}" for number in range(0, 100_000, 1_000)]


def test_each_key_object_is_kept_once() -> None:
    class Key:
        def __hash__(self) -> int:
            return 7

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Key)

    watchers = Watchers()
    first = Key()
    watched = [(gate, watchers.watch(gate, first)) for gate in [Gate()]]
    refs = []
    for _ in range(100):
        key, gate = Key(), Gate()
        refs.append(weakref.ref(key))
        watched.append((gate, watchers.watch(gate, key)))
    del key
    assert len(watchers) == 1
    assert {ref() for ref in refs} == {None}
    for gate, stretch in watched:
        assert stretch.key is first
        watchers.unwatch(gate, stretch)
    assert len(watchers) == 0


def test_a_walk_that_stands_on_what_has_left_the_list_finds_on_and_not_back() -> None:
    watchers = Watchers()
    watched = watch_many(watchers, 4 * STRETCH_LENGTH)
    first, second, third, fourth = (watched[n * STRETCH_LENGTH][1] for n in range(4))
    for gate, stretch in watched[STRETCH_LENGTH : 2 * STRETCH_LENGTH]:
        watchers.unwatch(gate, stretch)
    assert second.following is third
    assert second.previous is None
    assert first.following is third
    assert third.previous is first
    for gate, stretch in watched[:STRETCH_LENGTH]:
        watchers.unwatch(gate, stretch)
    assert first.following is third
    assert first.previous is None
    assert watchers.first("key") is third
    for gate, stretch in watched[3 * STRETCH_LENGTH :]:
        watchers.unwatch(gate, stretch)
    assert third.following is None
    assert fourth.previous is None
    assert names(watchers) == [gate.name for gate, _ in watched[2 * STRETCH_LENGTH : 3 * STRETCH_LENGTH]]


ACTIONS = st.lists(
    st.tuples(st.sampled_from(["watch", "watch", "watch", "unwatch", "unwatch burst"]), st.integers(0, 999)),
    max_size=300,
)


@given(actions=ACTIONS)
def test_a_walk_meets_in_order_whatever_is_still_ahead_of_it(actions: list[tuple[str, int]]) -> None:
    watchers = Watchers()
    watched = watch_many(watchers, 100)
    walk = watchers.first("key")
    met: list[str] = []
    come = 100
    for action, number in actions:
        if action == "watch":
            for _ in range(number % 5):
                gate = Gate(name=str(come))
                come += 1
                watched.append((gate, watchers.watch(gate, "key")))
        else:
            for _ in range(min(len(watched), 1 if action == "unwatch" else number % 40)):
                watchers.unwatch(*watched.pop(number % len(watched)))
        assert names(watchers) == [gate.name for gate, _ in watched]
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
    # What was there from the start, is there still, and has not been met, lies ahead.
    assert {gate.name for gate, _ in watched if last < int(gate.name) < 100} <= ahead | set(met)
