"""An `on_expiration` that raises TimeoutError: the operation expires, and awaiting it raises the error."""

from __future__ import annotations

import asyncio

import pytest

from purgatory import OperationState, Purgatory
from purgatory.observer import exception_of
from purgatory.testing import ManualClock
from tests.operations import Gate, raising

EXPIRED, FAILED = OperationState.EXPIRED, OperationState.FAILED


class Late(TimeoutError):
    """A user's own kind of TimeoutError."""


@pytest.mark.parametrize("error", [TimeoutError("too late"), Late("too late")])
def test_the_operation_has_expired_with_the_error_and_nothing_is_reported(
    clock: ManualClock, held: Purgatory, error: TimeoutError
) -> None:
    gate = held.try_complete_else_watch(Gate(1, expiring=raising(error)), ["a"])
    # It would raise what is reported.
    clock.advance(2)
    assert gate.ran == ["try_complete", "on_complete", "on_expiration"]
    assert (gate.state, gate.expired, gate.exception()) == (EXPIRED, True, error)
    with pytest.raises(TimeoutError, match="too late"):
        gate.result()
    assert (held.statistics().expired, held.statistics().failed) == (1, 0)
    # The journal and the dashboard count a failure by this.
    assert exception_of(gate) is None


async def test_every_task_that_awaits_gets_the_error(purgatory: Purgatory) -> None:
    error = TimeoutError("too late")
    gate = purgatory.try_complete_else_watch(Gate(0.001, expiring=raising(error)), ["a"])
    waits = [asyncio.ensure_future(gate) for _ in range(3)]
    assert await asyncio.gather(*waits, return_exceptions=True) == [error] * 3
    with pytest.raises(TimeoutError):
        await gate


def test_a_timeout_of_zero_or_less_raises_it_as_well(held: Purgatory) -> None:
    gate = held.try_complete_else_watch(Gate(0, expiring=raising(TimeoutError())), ["a"])
    assert gate.state is EXPIRED
    assert isinstance(gate.exception(), TimeoutError)


async def test_closing_raises_it_as_well() -> None:
    purgatory = Purgatory()
    async with purgatory:
        gate = purgatory.try_complete_else_watch(Gate(60, expiring=raising(TimeoutError())), ["a"])
    assert gate.state is EXPIRED
    assert isinstance(gate.exception(), TimeoutError)
    assert purgatory.statistics().expired == 1
