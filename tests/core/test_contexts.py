"""In which `contextvars` context hooks run, and how an operation keeps that of its caller."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Hashable
from typing import Any

import pytest

from purgatory import DelayedOperation, Purgatory
from purgatory.observer import ContextObserver, Timing
from purgatory.testing import ManualClock
from tests.operations import Gate

user: contextvars.ContextVar[str] = contextvars.ContextVar("user", default="nobody")


class Told(DelayedOperation[str]):
    """Its result is the user of the context in which its hooks run."""

    opened = False

    def try_complete(self) -> bool:
        return self.opened and self.force_complete()

    def on_complete(self) -> str:
        return user.get()


class Keeping(Told):
    """The recipe: it keeps the context in which it was made."""

    def __init__(self, timeout: float | None) -> None:
        super().__init__(timeout)
        self.context = contextvars.copy_context()

    def on_complete(self) -> str:
        return self.context.run(user.get)


async def wait_as(name: str, purgatory: Purgatory, operation: DelayedOperation[str]) -> str:
    user.set(name)
    return await purgatory.try_complete_else_watch(operation, ["a"])


async def test_hooks_run_in_the_context_of_who_checks(purgatory: Purgatory) -> None:
    operation = Told(60)
    wait = asyncio.create_task(wait_as("ada", purgatory, operation))
    await asyncio.sleep(0)
    operation.opened = True
    user.set("grace")
    purgatory.check_and_complete("a")
    assert await wait == "grace"


async def test_hooks_of_an_expiry_run_in_the_context_of_the_reaper(purgatory: Purgatory) -> None:
    assert await asyncio.create_task(wait_as("ada", purgatory, Told(0.001))) == "nobody"


async def test_an_operation_may_keep_the_context_in_which_it_was_made(purgatory: Purgatory) -> None:
    async def wait(name: str) -> str:
        user.set(name)
        return await purgatory.try_complete_else_watch(Keeping(0.001), ["a"])

    waits = [asyncio.create_task(wait(name)) for name in ("ada", "grace")]
    assert await asyncio.gather(*waits) == ["ada", "grace"]


class Tracer:
    """Knows the user who offered each operation."""

    needs_context = True

    def __init__(self) -> None:
        self.users: list[str] = []

    def operation_finished(self, purgatory: str, operation: DelayedOperation[Any], timing: Timing) -> None:
        self.users.append(timing.context.run(user.get))

    def key_checked(self, purgatory: str, key: Hashable, tried: int, completed: int, at: float) -> None: ...


class PlainObserver:
    """Asks for no context."""

    def __init__(self) -> None:
        self.timings: list[Timing] = []

    def operation_finished(self, purgatory: str, operation: DelayedOperation[Any], timing: Timing) -> None:
        self.timings.append(timing)

    def key_checked(self, purgatory: str, key: Hashable, tried: int, completed: int, at: float) -> None: ...


async def test_an_observer_that_asks_for_it_gets_the_context_of_the_offer() -> None:
    tracer = Tracer()
    observer: ContextObserver = tracer
    async with Purgatory(observers=[observer]) as purgatory:
        waits = [asyncio.create_task(wait_as(name, purgatory, Told(60))) for name in ("ada", "grace")]
        await asyncio.sleep(0)
        user.set("alan")
        for operation in purgatory.operations("a"):
            operation.force_complete()
        assert tracer.users == ["ada", "grace"]
        assert [await wait for wait in waits] == ["alan", "alan"]


def test_no_context_is_copied_where_no_observer_asks_for_it(clock: ManualClock) -> None:
    tracer, plain = Tracer(), PlainObserver()
    purgatory = clock.purgatory(observers=[plain])
    purgatory.add_observer(tracer)
    purgatory.try_complete_else_watch(Gate(opened=True), ["a"])
    purgatory.remove_observer(tracer)
    purgatory.try_complete_else_watch(Gate(opened=True), ["a"])
    with_tracer, without = plain.timings
    assert with_tracer.context.run(user.get) == "nobody"
    assert tracer.users == ["nobody"]
    with pytest.raises(AttributeError):
        without.context  # noqa: B018  # Reading it is the test.
