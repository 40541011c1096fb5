"""A CancelledError of a user's code, in the middle of somebody else's call, is an error of that code."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, NoReturn

import pytest

from purgatory import DelayedOperation, OperationState, Purgatory
from purgatory.observer import Timing
from tests.core.keys import Key
from tests.operations import Gate, a_few_turns


def cancelled() -> asyncio.Future[bool]:
    future: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
    future.cancel()
    return future


def says_so(error: BaseException | None, who: str) -> bool:
    """Whether it is the RuntimeError that takes the place of a CancelledError of `who`."""
    return (
        isinstance(error, RuntimeError)
        and str(error) == f"{who} raised CancelledError: something that it reads was cancelled"
        and isinstance(error.__cause__, asyncio.CancelledError)
    )


class Reader:
    """An observer that reads a cancelled future."""

    def operation_finished(self, purgatory: str, operation: DelayedOperation[Any], timing: Timing) -> None:
        cancelled().result()

    def key_checked(self, purgatory: str, key: object, tried: int, completed: int, at: float) -> None:
        cancelled().result()


@pytest.mark.parametrize(
    "wake",
    [
        lambda purgatory: purgatory.check_and_complete("job"),
        lambda purgatory: purgatory.check_and_complete_threadsafe("job"),
        lambda purgatory: purgatory.sweep("job"),
    ],
    ids=["check", "signal", "sweep"],
)
async def test_a_predicate_that_reads_a_cancelled_future_fails_its_own_wait_and_no_writer(
    purgatory: Purgatory, wake: Callable[[Purgatory], Any]
) -> None:
    job: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    waiting = asyncio.create_task(purgatory.wait_until(lambda: job.done() and job.result(), ["job"]))
    behind = purgatory.try_complete_else_watch(Gate(), ["job"])
    await a_few_turns()
    job.cancel()
    behind.opened = True
    written = 0
    async with asyncio.TaskGroup() as writers:

        async def write() -> None:
            nonlocal written
            for _ in range(3):
                called = wake(purgatory)
                if asyncio.iscoroutine(called):
                    await called
                written += 1

        writers.create_task(write())
    assert written == 3
    with pytest.raises(RuntimeError) as raised:
        await waiting
    assert says_so(raised.value, "PredicateOperation.try_complete()")
    assert await behind == "gate"


@pytest.mark.parametrize("hook", ["trying", "completing", "expiring"])
async def test_a_hook_that_reads_a_cancelled_future_fails_its_operation_and_no_other(
    purgatory: Purgatory, hook: str
) -> None:
    def read() -> bool:
        return cancelled().result()

    reading = purgatory.try_complete_else_watch(Gate(), ["a"])
    setattr(reading, hook, read)
    behind = purgatory.try_complete_else_watch(Gate(), ["a"])
    reading.opened = behind.opened = True
    if hook == "expiring":
        reading.reschedule(0)
    assert purgatory.check_and_complete("a") == 1
    assert reading.state is OperationState.FAILED
    assert says_so(reading.exception(), "Gate.try_complete()" if hook == "trying" else "a hook of Gate")
    assert behind.state is OperationState.COMPLETED


async def test_an_offer_that_reads_a_cancelled_future_gives_a_failed_operation(purgatory: Purgatory) -> None:
    reading = purgatory.try_complete_else_watch(Gate(trying=lambda: cancelled().result()), ["a"])
    assert says_so(reading.exception(), "Gate.try_complete()")


@pytest.mark.parametrize("offered", [True, False])
async def test_completing_an_operation_whose_hook_reads_a_cancelled_future_cancels_nobody(
    purgatory: Purgatory, offered: bool
) -> None:
    gate = Gate(completing=lambda: cancelled().result())
    if offered:
        purgatory.try_complete_else_watch(gate, ["a"])
        assert gate.complete("value")
    else:
        with pytest.raises(RuntimeError, match="something that it reads was cancelled"):
            gate.complete("value")
    assert says_so(gate.exception(), "a hook of Gate")


async def test_closing_ends_the_operations_behind_a_hook_that_reads_a_cancelled_future(
    reported: list[dict[str, Any]],
) -> None:
    async with Purgatory() as purgatory:
        reading = purgatory.try_complete_else_watch(Gate(completing=lambda: cancelled().result()), ["a"])
        behind = purgatory.try_complete_else_watch(Gate(), ["a"])
    assert [context["exception"] for context in reported] == [reading.exception()]
    assert says_so(reading.exception(), "a hook of Gate")
    assert behind.expired


async def test_an_observer_that_reads_a_cancelled_future_is_reported_and_stops_nobody(
    reported: list[dict[str, Any]],
) -> None:
    async with Purgatory(observers=[Reader()]) as purgatory:
        gate = purgatory.try_complete_else_watch(Gate(), ["a"])
        gate.opened = True
        assert purgatory.check_and_complete("a") == 1
        assert await gate == "gate"
    assert len(reported) == 2
    assert all(says_so(context["exception"], "Reader") for context in reported)


def read_cancelled() -> NoReturn:
    cancelled().result()
    raise AssertionError("the future was not cancelled")


@pytest.mark.parametrize("method", ["hashing", "comparing"])
async def test_a_key_that_reads_a_cancelled_future_gives_an_error_and_cancels_nobody(
    purgatory: Purgatory, method: str
) -> None:
    watched = Key("watched", 1)
    gate = purgatory.try_complete_else_watch(Gate(), [watched])
    bad = Key("bad", 1)
    setattr(bad, method, read_cancelled)
    calls: list[Callable[[], object]] = [
        lambda: purgatory.try_complete_else_watch(Gate(), [bad]),
        lambda: purgatory.try_complete_else_watch(Gate(), ["other", bad]),
        lambda: purgatory.check_and_complete(bad),
        lambda: purgatory.cancel_for_key(bad),
        lambda: purgatory.operations(bad),
        lambda: purgatory.watching(bad, 1),
        lambda: purgatory.count_watching(bad, 1),
    ]
    for call in calls:
        with pytest.raises(RuntimeError) as raised:
            call()
        assert str(raised.value).endswith("something that it reads was cancelled")
    assert purgatory.statistics().pending == 1
    assert gate.cancel()


@pytest.mark.parametrize("method", ["hashing", "comparing"])
async def test_a_signal_of_a_key_that_reads_a_cancelled_future_harms_no_other_signal(
    purgatory: Purgatory, reported: list[dict[str, Any]], method: str
) -> None:
    gate = purgatory.try_complete_else_watch(Gate(), [Key("good", 1)])
    gate.opened = True
    bad = Key("bad", 1)
    purgatory.check_and_complete_threadsafe(bad)
    purgatory.check_and_complete_threadsafe("other")
    setattr(bad, method, read_cancelled)
    with pytest.raises(RuntimeError, match="something that it reads was cancelled"):
        purgatory.check_and_complete_threadsafe(Key("third", 1) if method == "comparing" else bad)
    purgatory.check_and_complete_threadsafe(2)
    await a_few_turns()
    assert len(reported) == 1
    assert purgatory.check_and_complete(Key("good", 1)) == 1


async def test_a_key_that_reads_a_cancelled_future_when_its_operation_ends_is_reported(
    purgatory: Purgatory, reported: list[dict[str, Any]]
) -> None:
    key = Key("key", 1)
    gate = purgatory.try_complete_else_watch(Gate(opened=False), [key])
    key.hashing = read_cancelled
    assert gate.force_complete()
    assert await gate == "gate"
    assert [says_so(context["exception"], "a key") for context in reported] == [True]


class CancelledTruth:
    """An object that reads a cancelled future when it is tested or formatted."""

    def __bool__(self) -> bool:
        read_cancelled()

    def __repr__(self) -> str:
        read_cancelled()


async def test_the_truth_of_what_a_try_returns_may_read_a_cancelled_future(purgatory: Purgatory) -> None:
    class Odd(DelayedOperation[None]):
        def try_complete(self) -> Any:
            return CancelledTruth()

    odd = purgatory.try_complete_else_watch(Odd(None), ["a"])
    assert says_so(odd.exception(), "Odd.try_complete()")


class KeyReader:
    """An observer of keys that reads a cancelled future."""

    def __init__(self, method: str) -> None:
        self.method = method

    def key_watched(self, key: object) -> None:
        if self.method == "key_watched":
            read_cancelled()

    def key_left(self, key: object) -> None:
        if self.method == "key_left":
            read_cancelled()


async def test_an_observer_of_keys_that_reads_a_cancelled_future_cancels_nobody(
    purgatory: Purgatory, reported: list[dict[str, Any]]
) -> None:
    purgatory.observe_keys(KeyReader("key_watched"))
    with pytest.raises(RuntimeError, match="something that it reads was cancelled"):
        purgatory.try_complete_else_watch(Gate(), ["a"])
    purgatory.observe_keys(None)
    pending = purgatory.try_complete_else_watch(Gate(), ["b"])
    purgatory.observe_keys(KeyReader("key_watched"))
    with pytest.raises(RuntimeError, match="something that it reads was cancelled"):
        purgatory.watch_also(pending, ["c"])
    assert pending.keys == ("b",)
    assert pending.cancel()
    purgatory.observe_keys(None)
    purgatory.observe_keys(KeyReader("key_left"))
    gate = purgatory.try_complete_else_watch(Gate(), ["a"])
    assert gate.force_complete()
    assert len(reported) == 1
    assert purgatory.statistics().pending == 0


async def test_a_reaper_that_somebody_cancels_says_so(caplog: pytest.LogCaptureFixture) -> None:
    purgatory = Purgatory("cut")
    purgatory.start()
    gate = purgatory.try_complete_else_watch(Gate(), ["a"])
    await a_few_turns()
    (reaper,) = [task for task in asyncio.all_tasks() if task.get_name() == "cut reaper"]
    reaper.cancel()
    await a_few_turns()
    assert gate.state is OperationState.CANCELLED
    assert "purgatory 'cut': the reaper was cancelled while the purgatory was open" in caplog.text
