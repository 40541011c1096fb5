"""The search for operations."""

from __future__ import annotations

from collections.abc import Hashable

import pytest

from purgatory import DelayedValue, Purgatory
from purgatory.testing import ManualClock
from purgatory.web.dashboard.ended_sample import EndedOperation
from purgatory.web.dashboard.pending_sample import KEY_LIMIT, SHOWN, PendingOperation
from purgatory.web.dashboard.recorder import Recorder
from purgatory.web.dashboard.search import LONGEST, READ, STATES, Found, Search
from tests.operations import Gate, raising


@pytest.fixture
def recorder() -> Recorder:
    return Recorder(lambda: 0)


@pytest.fixture
def purgatory(clock: ManualClock, recorder: Recorder) -> Purgatory:
    return clock.purgatory(observers=[recorder])


class Door(Gate):
    pass


def watch(purgatory: Purgatory, *keys: Hashable) -> None:
    purgatory.try_complete_else_watch(Gate(), keys)


def keys_of(found: Found) -> list[list[str]]:
    return [operation.keys for operation in found.operations]


def test_without_parameters_there_is_no_search() -> None:
    assert Search.of({"purgatory": "polls", "version": "1"}) is None
    assert Search.of({"key": "", "state": "pending"}) is None
    assert Search.of({"key": "a", "name": "B", "state": "failed"}) == Search("a", "B", "failed")


def test_a_text_that_is_too_long_and_an_unknown_state_are_refused() -> None:
    Search(key="x" * LONGEST, name="x" * LONGEST)
    for name in ("key", "name"):
        with pytest.raises(ValueError, match="search for 200 characters or less"):
            Search.of({name: "x" * (LONGEST + 1)})
    with pytest.raises(ValueError, match="must be one of pending, completed, expired, cancelled, failed"):
        Search.of({"state": "new"})


def test_a_part_of_a_key_finds_the_operations_on_all_such_keys(
    purgatory: Purgatory, recorder: Recorder
) -> None:
    for key in ("order 1", "user 1", "Order 2"):
        watch(purgatory, key)
    found = Search(key="ORDER").run(purgatory, recorder, 0.0)
    assert keys_of(found) == [["'order 1'"], ["'Order 2'"]]
    assert (found.count, found.sampled) == (2, False)
    assert Search(key="nothing").run(purgatory, recorder, 0.0) == Found("pending", [], 0, sampled=False)


@pytest.mark.parametrize("key", ["order", 17, ("order", 17), None, b"x", ""], ids=repr)
def test_a_key_that_is_written_in_full_is_found_among_any_number_of_keys(
    purgatory: Purgatory, recorder: Recorder, key: Hashable
) -> None:
    for number in range(2 * KEY_LIMIT):
        watch(purgatory, (number, "order", 17, None, b"x"))
    watch(purgatory, key)
    for number in range(2 * KEY_LIMIT):
        watch(purgatory, (-1 - number, "order", 17, None, b"x"))
    found = Search(key=repr(key)).run(purgatory, recorder, 0.0)
    assert keys_of(found) == [[repr(key)]]
    assert (found.count, found.sampled) == (1, False)
    if key == "order":
        assert Search(key="order").run(purgatory, recorder, 0.0) == found


class Opaque:
    def __repr__(self) -> str:
        return "<opaque>"


def test_a_key_whose_repr_is_no_literal_is_found_by_its_label(
    purgatory: Purgatory, recorder: Recorder
) -> None:
    watch(purgatory, Opaque())
    watch(purgatory, ("<opaque>", 1))
    assert keys_of(Search(key="<opaque>").run(purgatory, recorder, 0.0)) == [["<opaque>"]]


@pytest.mark.parametrize("text", ["[1]", "{", "1 +", "(" * LONGEST, "f()", "'\\ud800'", "\x00"], ids=repr)
def test_any_text_can_be_searched_for(purgatory: Purgatory, recorder: Recorder, text: str) -> None:
    watch(purgatory, "a")
    assert Search(key=text).run(purgatory, recorder, 0.0).count == 0


def test_a_part_of_a_name_finds_the_operations_of_such_classes(
    purgatory: Purgatory, recorder: Recorder
) -> None:
    for number in range(30):
        purgatory.try_complete_else_watch(Door() if number % 10 == 5 else Gate(), ["a", number])
    found = Search(name="door").run(purgatory, recorder, 0.0)
    assert {operation.kind for operation in found.operations} == {"Door"}
    assert found.count == 3
    assert Search(name="door", key="25").run(purgatory, recorder, 0.0).count == 1


def test_the_oldest_are_shown_and_all_that_were_read_are_counted(
    clock: ManualClock, purgatory: Purgatory, recorder: Recorder
) -> None:
    for _ in range(3 * SHOWN):
        watch(purgatory, "a")
        clock.advance(1)
    found = Search(key="a").run(purgatory, recorder, clock.time())
    ages = [operation.age for operation in found.operations if isinstance(operation, PendingOperation)]
    assert ages == [pytest.approx(3 * SHOWN - number) for number in range(SHOWN)]
    assert (found.count, found.sampled) == (3 * SHOWN, False)


def test_a_bounded_number_of_operations_is_read(purgatory: Purgatory, recorder: Recorder) -> None:
    for _ in range(READ + 100):
        watch(purgatory, "a")
    found = Search(name="Gate").run(purgatory, recorder, 0.0)
    assert (found.count, found.sampled) == (READ + SHOWN, True)


def test_of_many_keys_a_sample_is_searched(purgatory: Purgatory, recorder: Recorder) -> None:
    for number in range(2 * KEY_LIMIT):
        watch(purgatory, f"order {number}")
    found = Search(key="order").run(purgatory, recorder, 0.0)
    assert (found.count, found.sampled) == (KEY_LIMIT, True)


def test_operations_that_have_ended_are_found_by_state(
    clock: ManualClock, purgatory: Purgatory, recorder: Recorder
) -> None:
    purgatory.try_complete_else_watch(Gate(opened=True), ["a"])
    purgatory.try_complete_else_watch(Gate(0), ["b"])
    purgatory.try_complete_else_watch(Gate(), ["c"]).cancel()
    failing = purgatory.try_complete_else_watch(Gate(trying=raising(ValueError("bad"))), ["d"])
    assert failing.exception() is not None
    clock.advance(2)
    purgatory.try_complete_else_watch(Door(opened=True), ["ab"])
    keys = {state: keys_of(Search(state=state).run(purgatory, recorder, 2.0)) for state in STATES[1:]}
    assert keys == {
        "completed": [["'ab'"], ["'a'"]],
        "expired": [["'b'"]],
        "cancelled": [["'c'"]],
        "failed": [["'d'"]],
    }
    (failed,) = Search(state="failed").run(purgatory, recorder, 2.0).operations
    assert isinstance(failed, EndedOperation)
    assert failed.error == "ValueError('bad')"
    found = Search("b", "door", "completed").run(purgatory, recorder, 2.0)
    assert found.operations == [EndedOperation("Door", ["'ab'"], 0, at=2.0, waited=0.0, tries=1, error=None)]
    assert found.sampled


def test_operations_without_a_key_are_found_by_name_and_by_state_and_by_no_key(
    purgatory: Purgatory, recorder: Recorder
) -> None:
    purgatory.try_complete_else_watch(DelayedValue[int](None)).complete(7)
    purgatory.try_complete_else_watch(DelayedValue[int](None))
    watch(purgatory, "a")
    for state in ("pending", "completed"):
        found = Search(name="value", state=state).run(purgatory, recorder, 0.0)
        assert keys_of(found) == [[]]
        assert Search("no key", "value", state).run(purgatory, recorder, 0.0).operations == []
