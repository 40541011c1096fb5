"""`check_and_complete(key, limit=n)` completes at most n, first come first served, and tries no further."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from purgatory import OperationState, Purgatory
from purgatory.testing import ManualClock
from tests.operations import Gate, Stop, raising

COMPLETED, FAILED = OperationState.COMPLETED, OperationState.FAILED


def parked(
    held: Purgatory, count: int, key: str = "a", completing: Callable[[], object] | None = None
) -> list[Gate]:
    gates = [held.try_complete_else_watch(Gate(60, completing=completing), [key]) for _ in range(count)]
    for gate in gates:
        gate.opened = True
    return gates


def tried(gates: list[Gate]) -> int:
    """How many were tried after the offer."""
    return sum(gate.ran.count("try_complete") - 1 for gate in gates)


def completed(gates: list[Gate]) -> list[int]:
    return [number for number, gate in enumerate(gates) if gate.state is COMPLETED]


@pytest.mark.parametrize("limit", [1, 2, 16, 17, 32, 39, 40])
def test_the_first_ones_complete_and_no_other_is_tried(held: Purgatory, limit: int) -> None:
    gates = parked(held, 40)
    assert held.check_and_complete("a", limit=limit) == limit
    assert completed(gates) == list(range(limit))
    assert tried(gates) == limit


def test_a_limit_above_what_can_complete_tries_all(held: Purgatory) -> None:
    gates = parked(held, 20)
    assert held.check_and_complete("a", 100) == 20
    assert tried(gates) == 20


def test_an_operation_whose_condition_does_not_hold_does_not_count(held: Purgatory) -> None:
    gates = parked(held, 20)
    gates[0].opened = gates[2].opened = False
    assert held.check_and_complete("a", limit=2) == 2
    assert (completed(gates), tried(gates)) == ([1, 3], 4)


def test_an_operation_that_fails_does_not_count(held: Purgatory) -> None:
    gates = parked(held, 3)
    gates[0].trying = raising(ValueError("bad"))
    assert held.check_and_complete("a", limit=1) == 1
    assert completed(gates) == [1]
    assert isinstance(gates[0].exception(), ValueError)


@pytest.mark.parametrize("limit", [0, -1, -100])
def test_a_limit_below_one_is_refused(held: Purgatory, limit: int) -> None:
    gates = parked(held, 2)
    with pytest.raises(ValueError, match="limit must be at least 1"):
        held.check_and_complete("a", limit=limit)
    assert tried(gates) == 0


@pytest.mark.parametrize("limit", [None, 1])
def test_an_unhashable_key_is_refused_at_once_inside_a_hook(held: Purgatory, limit: int | None) -> None:
    def check() -> None:
        with pytest.raises(TypeError, match="unhashable"):
            held.check_and_complete([], limit=limit)  # type: ignore[arg-type]

    gate = held.try_complete_else_watch(Gate(trying=check), ["a"])
    assert gate.state is OperationState.PENDING


def test_equal_checks_with_a_limit_inside_hooks_are_not_merged(held: Purgatory) -> None:
    gates = parked(held, 5)

    def hand_over_two() -> None:
        assert held.check_and_complete("a", limit=1) == 0
        assert held.check_and_complete("a", limit=1) == 0

    (first,) = parked(held, 1, "b", hand_over_two)
    assert held.check_and_complete("b") == 3
    assert first.state is COMPLETED
    assert completed(gates) == [0, 1]


def test_a_check_without_a_limit_is_not_merged_with_one_that_has_one(held: Purgatory) -> None:
    gates = parked(held, 5)

    def check_both() -> None:
        held.check_and_complete("a", limit=1)
        held.check_and_complete("a")

    parked(held, 1, "b", check_both)
    assert held.check_and_complete("b") == 6
    assert completed(gates) == [0, 1, 2, 3, 4]


def test_after_a_base_exception_the_rest_of_the_limit_completes(held: Purgatory) -> None:
    gates = parked(held, 5)
    gates[1].completing = raising(Stop("now"))
    with pytest.raises(Stop):
        held.check_and_complete("a", limit=2)
    assert (completed(gates), gates[1].state) == ([0], FAILED)
    # The next outermost call goes on.
    parked(held, 1, "b")
    held.check_and_complete("b")
    assert completed(gates) == [0, 2]


class StoppingObserver:
    """Raises when it is told of the first end."""

    def __init__(self) -> None:
        self.told = 0

    def operation_finished(self, *_: object) -> None:
        self.told += 1
        if self.told == 1:
            raise Stop("now")

    def key_checked(self, *_: object) -> None:
        pass


@pytest.mark.parametrize(("limit", "expected"), [(1, [0]), (2, [0, 1])])
def test_what_completed_before_an_observer_raised_counts(limit: int, expected: list[int]) -> None:
    held = ManualClock().purgatory(observers=[StoppingObserver()])
    gates = parked(held, 5)
    with pytest.raises(Stop):
        held.check_and_complete("a", limit=limit)
    parked(held, 1, "b")
    held.check_and_complete("b")
    assert completed(gates) == expected


def test_a_pool_hands_over_each_permit_that_is_released_in_a_hook(held: Purgatory) -> None:
    class Request(Gate):
        def try_complete(self) -> bool:
            self.ran.append("try_complete")
            return bool(free) and self.force_complete()

        def on_complete(self) -> str:
            self.name = free.pop()
            return self.name

    free: list[str] = []
    requests = [held.try_complete_else_watch(Request(60), ["free"]) for _ in range(4)]

    def release_both() -> None:
        for permit in ("p", "q"):
            free.append(permit)
            held.check_and_complete("free", limit=1)

    parked(held, 1, "released", release_both)
    held.check_and_complete("released")
    assert completed(list(requests)) == [0, 1]
    assert tried(list(requests)) == 2
    assert free == []
