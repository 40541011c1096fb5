"""Results and errors from outside: `complete(value)` and `fail(error)`."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from purgatory import DelayedValue, OperationState, Purgatory
from purgatory.testing import ManualClock
from tests.operations import Gate, a_few_turns, raising

COMPLETED, FAILED = OperationState.COMPLETED, OperationState.FAILED


def parked(held: Purgatory, *keys: str, **hooks: Any) -> Gate:
    return held.try_complete_else_watch(Gate(60, **hooks), keys or ["a"])


# Completing with a value


def test_the_value_takes_the_place_of_what_on_complete_returns(held: Purgatory) -> None:
    gate = parked(held, "a", "b")
    assert gate.complete("from outside")
    assert gate.ran == ["try_complete", "on_complete"]
    assert (gate.state, gate.result(), gate.exception()) == (COMPLETED, "from outside", None)
    assert (held.statistics().completed, held.statistics().keys) == (1, 0)


@pytest.mark.parametrize("value", [None, False, 0, ValueError("a value like any other")])
def test_any_object_is_a_value(held: Purgatory, value: Any) -> None:
    gate = parked(held)
    assert gate.complete(value)
    assert gate.result() is value


def test_only_the_call_that_ends_an_operation_returns_true(held: Purgatory) -> None:
    completed, failed, forced = parked(held), parked(held), parked(held)
    assert completed.complete("first")
    assert failed.fail(ValueError("first"))
    assert forced.force_complete()
    for gate in (completed, failed, forced):
        assert not gate.complete("second")
        assert not gate.fail(ValueError("second"))
        assert not gate.force_complete()
    assert completed.result() == "first"
    assert str(failed.exception()) == "first"
    assert forced.result() == "gate"


async def test_every_task_that_awaits_gets_the_value(purgatory: Purgatory) -> None:
    gate = parked(purgatory)
    waits = [asyncio.ensure_future(gate) for _ in range(3)]
    await asyncio.sleep(0)
    gate.complete("value")
    assert await asyncio.gather(*waits) == ["value"] * 3


def test_try_complete_may_complete_with_a_value(held: Purgatory) -> None:
    class Answered(Gate):
        def try_complete(self) -> bool:
            return self.complete("answer")

    assert held.try_complete_else_watch(Answered(), ["a"]).result() == "answer"


def test_while_on_complete_runs_there_is_no_result_yet(held: Purgatory) -> None:
    def look() -> None:
        for read in (gate.result, gate.exception):
            with pytest.raises(asyncio.InvalidStateError):
                read()

    gate = parked(held, completing=look)
    assert gate.complete("value")
    assert gate.result() == "value"


def test_an_on_complete_that_raises_fails_the_operation_in_spite_of_the_value(
    clock: ManualClock, held: Purgatory
) -> None:
    error = ValueError("bad")
    gate = parked(held, completing=raising(error))
    assert gate.complete("value")
    assert (gate.state, gate.exception()) == (FAILED, error)
    clock.advance(0)


def test_inside_a_hook_the_value_comes_when_the_hook_is_over(held: Purgatory) -> None:
    def complete_the_other() -> None:
        assert second.complete("handed over")
        assert second.state is COMPLETED
        # It leaves its keys at once.
        assert (held.statistics().pending, held.statistics().keys) == (0, 0)
        with pytest.raises(asyncio.InvalidStateError):
            second.result()
        with pytest.raises(asyncio.InvalidStateError):
            second.exception()

    first, second = parked(held, "a", completing=complete_the_other), parked(held, "b")
    assert first.force_complete()
    assert first.result() == "gate"
    assert second.result() == "handed over"
    assert second.ran == ["try_complete", "on_complete"]


# Failing


async def test_failing_wakes_every_task_with_the_error(purgatory: Purgatory) -> None:
    gate, error = parked(purgatory, "a", "b"), OSError("gone")
    waits = [asyncio.ensure_future(gate) for _ in range(3)]
    await asyncio.sleep(0)
    assert gate.fail(error)
    assert await asyncio.gather(*waits, return_exceptions=True) == [error] * 3
    assert (gate.state, gate.exception(), gate.ran) == (FAILED, error, ["try_complete"])
    assert (purgatory.statistics().failed, purgatory.statistics().keys) == (1, 0)


@pytest.mark.usefixtures("collector_off")
def test_an_error_that_nobody_sees_is_reported_when_the_operation_is_freed(
    clock: ManualClock, held: Purgatory
) -> None:
    error = OSError("gone")
    gate = parked(held)
    gate.fail(error)
    clock.advance(0)
    del gate
    with pytest.raises(ExceptionGroup) as caught:
        clock.advance(0)
    assert caught.value.exceptions == (error,)


async def test_an_error_that_somebody_awaits_later_is_not_reported(purgatory: Purgatory) -> None:
    gate, error = parked(purgatory, "a"), LookupError("gone")
    assert gate.fail(error)
    await a_few_turns()
    with pytest.raises(LookupError):
        await gate


async def test_an_error_that_nobody_sees_names_the_operation_and_its_keys(
    purgatory: Purgatory, reported: list[dict[str, Any]], caplog: pytest.LogCaptureFixture
) -> None:
    error = LookupError("gone")
    assert parked(purgatory, "a", "b").fail(error)
    await a_few_turns()
    assert [(context["message"], context["exception"]) for context in reported] == [
        ("Gate on ('a', 'b') failed and nobody awaited it", error)
    ]
    assert "Gate on ('a', 'b') failed and nobody awaited it" in caplog.text


async def test_an_error_that_nobody_sees_of_an_operation_without_a_key_names_none(
    purgatory: Purgatory, reported: list[dict[str, Any]]
) -> None:
    assert purgatory.try_complete_else_watch(DelayedValue[int](None)).fail(LookupError("gone"))
    await a_few_turns()
    assert [context["message"] for context in reported] == ["DelayedValue failed and nobody awaited it"]


async def test_an_error_that_fail_was_given_is_in_the_log_as_information(
    purgatory: Purgatory, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "purgatory")
    gate = parked(purgatory, "a")
    assert gate.fail(LookupError("gone"))
    await a_few_turns()
    assert isinstance(gate.exception(), LookupError)
    assert [
        (record.levelname, record.getMessage()) for record in caplog.records if record.name == "purgatory"
    ] == [("INFO", "purgatory 'purgatory': an operation failed")]


def test_an_error_that_is_freed_after_the_loop_is_reported_at_once() -> None:
    reported: list[dict[str, Any]] = []

    async def main() -> Gate:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
        async with Purgatory() as purgatory:
            gate = parked(purgatory)
            assert gate.fail(LookupError("gone"))
            return gate

    gate = asyncio.run(main())
    assert reported == []
    del gate
    assert [type(context["exception"]) for context in reported] == [LookupError]


def test_an_error_of_an_operation_that_was_never_offered_is_reported_to_nobody() -> None:
    assert Gate().fail(LookupError("gone"))


def test_an_error_that_somebody_sees_is_not_reported(clock: ManualClock, held: Purgatory) -> None:
    gate = parked(held)
    gate.fail(OSError("gone"))
    assert isinstance(gate.exception(), OSError)
    clock.advance(0)


@pytest.mark.parametrize(
    "error", [None, "bad", ValueError, StopIteration("bad"), KeyboardInterrupt(), asyncio.CancelledError()]
)
def test_what_no_task_should_raise_is_refused(held: Purgatory, error: Any) -> None:
    gate = parked(held)
    with pytest.raises(TypeError, match="fails with an Exception, and no StopIteration"):
        gate.fail(error)
    assert gate.state is OperationState.PENDING


def test_inside_a_hook_the_failing_operation_leaves_its_keys_at_once(held: Purgatory) -> None:
    def fail_the_other() -> None:
        assert second.fail(OSError("gone"))
        assert (held.statistics().pending, held.statistics().keys) == (0, 0)

    first, second = parked(held, "a", completing=fail_the_other), parked(held, "b")
    assert first.force_complete()
    assert isinstance(second.exception(), OSError)
    assert second.ran == ["try_complete"]
    assert held.statistics().failed == 1


# Without a purgatory


async def test_an_operation_of_no_purgatory_takes_a_value() -> None:
    gate = Gate()
    assert gate.complete("value")
    assert await gate == "value"
    assert gate.ran == ["on_complete"]


async def test_an_operation_of_no_purgatory_takes_an_error() -> None:
    gate, error = Gate(), OSError("gone")
    assert gate.fail(error)
    with pytest.raises(OSError, match="gone") as caught:
        await gate
    assert caught.value is error
    await a_few_turns()
