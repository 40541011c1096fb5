"""Every reference that an operation takes is given back: to its class, to None, to small numbers."""

from __future__ import annotations

import asyncio
import gc
import inspect
import os
import subprocess
import sys
import weakref
from collections.abc import Callable, Hashable
from contextlib import suppress
from typing import Any

import pytest

from purgatory import COMPILED, DelayedOperation, OperationState, Purgatory, TimerTask, TimingWheel
from purgatory.observer import Timing
from purgatory.testing import ManualClock

pytestmark = pytest.mark.usefixtures("little_to_collect")

# Of each kind of end, so that all of them together are 100,000 operations.
OPERATIONS = 20_000


class Wait(DelayedOperation[int]):
    """Completes when it is tried while `ready` is True."""

    ready = False

    def try_complete(self) -> bool:
        return self.ready and self.force_complete()

    def on_complete(self) -> int:
        return 1


class SlottedWait(Wait):
    __slots__ = ("number",)


class Silent:
    """An observer that does nothing."""

    def operation_finished(self, purgatory: str, operation: DelayedOperation[Any], timing: Timing) -> None:
        pass

    def key_checked(self, purgatory: str, key: Hashable, tried: int, completed: int, at: float) -> None:
        pass


def counted() -> list[object]:
    """All classes of the core, and what its code refers to most often."""
    classes = {
        member
        for name, module in list(sys.modules.items())
        if name.startswith("purgatory._core.")
        for member in vars(module).values()
        if inspect.isclass(member) and member.__module__.startswith("purgatory.")
    }
    values = [None, True, False, *range(-5, 10), 1.0, 30.0, "k", (), *OperationState]
    return [*sorted(classes, key=lambda cls: cls.__qualname__), Wait, SlottedWait, *values]


def grown(run: Callable[[int], object]) -> dict[str, int]:
    """What `OPERATIONS` operations added references to or took from: more than one for each hundred."""
    run(100)
    gc.collect()
    objects = counted()
    before = [sys.getrefcount(value) for value in objects]
    run(OPERATIONS)
    gc.collect()
    after = [sys.getrefcount(value) for value in objects]
    return {
        repr(value): now - then
        for value, then, now in zip(objects, before, after, strict=True)
        if abs(now - then) > OPERATIONS // 100
    }


def complete(purgatory: Purgatory, clock: ManualClock, wait: Wait) -> None:
    wait.ready = True
    purgatory.check_and_complete("k")


def expire(purgatory: Purgatory, clock: ManualClock, wait: Wait) -> None:
    clock.advance(31)


def cancel(purgatory: Purgatory, clock: ManualClock, wait: Wait) -> None:
    wait.cancel()


@pytest.mark.usefixtures("untraced")
@pytest.mark.parametrize("cls", [Wait, SlottedWait])
@pytest.mark.parametrize("observers", [(), (Silent(),)], ids=["unobserved", "observed"])
@pytest.mark.parametrize("finish", [complete, expire, cancel])
def test_operations_that_ended_hold_no_reference(
    finish: Callable[[Purgatory, ManualClock, Wait], None], observers: tuple[Silent, ...], cls: type[Wait]
) -> None:
    clock = ManualClock()
    purgatory = clock.purgatory(observers=observers)
    # While it is pending, no timer of the clock is cancelled. A ManualClock keeps those until their time.
    purgatory.try_complete_else_watch(Wait(20.0), ["other"])

    def run(operations: int) -> None:
        for _ in range(operations // 2):
            wait = purgatory.try_complete_else_watch(cls(30.0), ("k", "l"))
            wait.reschedule(30)
            finish(purgatory, clock, wait)
        # Two on a key are in a list.
        for _ in range(operations // 4):
            first = purgatory.try_complete_else_watch(cls(None), ["k"])
            second = purgatory.try_complete_else_watch(cls(30.0), ["k"])
            first.cancel()
            finish(purgatory, clock, second)

    assert grown(run) == {}


@pytest.mark.usefixtures("untraced")
def test_operations_that_were_awaited_hold_no_reference() -> None:
    async def waits(operations: int) -> None:
        async with Purgatory() as purgatory:
            for _ in range(operations):
                wait = purgatory.try_complete_else_watch(Wait(30.0), ["k"])
                wait.ready = True
                asyncio.get_running_loop().call_soon(purgatory.check_and_complete, "k")
                await wait

    with asyncio.Runner() as runner:
        assert grown(lambda operations: runner.run(waits(operations))) == {}


@pytest.mark.usefixtures("untraced")
def test_what_was_refused_or_failed_holds_no_reference() -> None:
    class Failing(Wait):
        def try_complete(self) -> bool:
            raise ValueError

    clock = ManualClock()
    purgatory = clock.purgatory()
    full = clock.purgatory(max_pending=1)
    full.try_complete_else_watch(Wait(None), ["k"])

    def run(operations: int) -> None:
        for _ in range(operations // 4):
            with suppress(ValueError):
                Wait(float("nan"))
            with suppress(TypeError):
                purgatory.try_complete_else_watch(Wait(1), [[]])  # type: ignore[list-item]
            with suppress(Exception):
                full.try_complete_else_watch(Wait(1), ["k"])
            failed = purgatory.try_complete_else_watch(Failing(1), ["k"])
            failed.exception()
            # Whether somebody has seen the exception is looked up in the next turn.
            clock.advance(0)

    assert grown(run) == {}


@pytest.mark.usefixtures("untraced")
def test_purgatories_wheels_and_tasks_hold_no_reference() -> None:
    def run(operations: int) -> None:
        for number in range(operations // 10):
            clock = ManualClock()
            purgatory = clock.purgatory()
            purgatory.try_complete_else_watch(Wait(30.0), ["k"])
            wheel = TimingWheel(2 + number % 8)
            wheel.add(TimerTask(), 1 + number % 1_000)
            wheel.advance(1_000)

    assert grown(run) == {}


def a_class(name: str) -> type[TimerTask]:
    """A class that exists only as long as its last instance, or until this function's caller drops it."""

    class Task(TimerTask):
        pass

    class SlottedTask(TimerTask):
        __slots__ = ("value",)

    class SlottedOperation(DelayedOperation[None]):
        __slots__ = ("value",)

        def __init__(self) -> None:
            super().__init__(30.0)

        def try_complete(self) -> bool:
            return False

    class Operation(DelayedOperation[None]):
        def __init__(self) -> None:
            super().__init__(30.0)

        def try_complete(self) -> bool:
            return False

    class SlottedSubclass(SlottedOperation):
        __slots__ = ("more",)

    class Subclass(SlottedOperation):
        pass

    class Mixin:
        pass

    class Mixed(Mixin, Subclass):
        def __del__(self) -> None:
            pass

    classes = [Task, SlottedTask, SlottedOperation, Operation, SlottedSubclass, Subclass, Mixed]
    return {cls.__name__: cls for cls in classes}[name]


CLASSES = ["Task", "SlottedTask", "SlottedOperation", "Operation", "SlottedSubclass", "Subclass", "Mixed"]


@pytest.mark.parametrize("name", CLASSES)
def test_a_class_is_freed_with_its_last_instance(name: str) -> None:
    cls = a_class(name)
    last = cls()
    for _ in range(10):
        cls()
    freed = weakref.ref(cls)

    del cls
    gc.collect()
    assert freed() is type(last)

    del last
    gc.collect()
    assert freed() is None


@pytest.mark.parametrize("name", CLASSES[2:])
def test_a_class_is_freed_whose_instances_were_parked(name: str) -> None:
    clock = ManualClock()
    purgatory = clock.purgatory()
    cls: Any = a_class(name)
    completed, expired, cancelled, closed = (
        purgatory.try_complete_else_watch(cls(), ["a", number]) for number in range(4)
    )
    completed.force_complete()
    cancelled.cancel()
    closed.reschedule(60)
    clock.advance(30)
    assert expired.expired
    assert purgatory.operations() == [closed]
    freed = weakref.ref(cls)

    closed.cancel()
    del cls, completed, expired, cancelled, closed
    gc.collect()
    assert freed() is None


@pytest.mark.parametrize("name", ["SlottedTask", "Task", "SlottedOperation", "Operation", "Mixed"])
def test_a_class_is_freed_whose_instances_refer_to_one_another(name: str) -> None:
    cls: Any = a_class(name)
    one, other = cls(), cls()
    # The class is in the cycle, too: an instance is an attribute of it.
    one.value, other.value, cls.instance = other, one, one
    freed = weakref.ref(cls)

    del cls, one, other
    gc.collect()
    assert freed() is None


def test_a_class_is_freed_whose_init_raised() -> None:
    def define() -> weakref.ref[type]:
        class Early(DelayedOperation[None]):
            def __init__(self) -> None:
                raise ZeroDivisionError

        class Late(DelayedOperation[None]):
            __slots__ = ("value",)

            def __init__(self) -> None:
                super().__init__(float("nan"))

        class Both(Early, Late):
            pass

        for _ in range(10):
            for cls in (Early, Late, Both):
                with pytest.raises((ZeroDivisionError, ValueError)):
                    cls()
                # Without __init__ it has no state at all.
                cls.__new__(cls)
        return weakref.ref(Both)

    freed = define()
    gc.collect()
    assert freed() is None


def test_a_class_of_an_operation_that_is_pending_stays() -> None:
    purgatory = ManualClock().purgatory()
    for name in CLASSES[2:]:
        cls: Any = a_class(name)
        purgatory.try_complete_else_watch(cls(), ["k"])

    del cls
    gc.collect()
    assert [type(operation).__name__ for operation in purgatory.operations("k")] == CLASSES[2:]
    for operation in purgatory.operations("k"):
        assert operation.force_complete()


CHAINS = """
import gc, sys
import purgatory
from purgatory.testing import ManualClock

class Link(purgatory.DelayedOperation):
    __slots__ = ("next",)

    def try_complete(self):
        return False

class Loose(Link):
    pass

class Silent:
    def operation_finished(self, name, operation, timing):
        pass

    def key_checked(self, name, key, tried, completed, at):
        pass

clock = ManualClock()
held = clock.purgatory(observers=[Silent()])
for number in range(300):
    head = None
    for _ in range(200):
        link = (Link, Loose)[number % 2](30.0)
        link.next, head = head, link
        held.try_complete_else_watch(link, ["a", "b"])
    link = head
    while link is not None:
        if number % 3 == 0:
            link.force_complete()
        elif number % 3 == 1:
            link.cancel()
        link = link.next
    if number % 3 == 2:
        clock.advance(30)
    # Freeing the first frees the second, and so on.
    del head, link
    if number % 50 == 0:
        gc.collect()
# Deep enough for the interpreter to put off the deallocation of some of them.
for kind in (Link, Loose):
    head = None
    for _ in range(100_000):
        link = kind(None)
        link.next, head = head, link
    del head, link
assert held.statistics().pending == 0

print(purgatory.COMPILED, gc.collect())
"""


@pytest.mark.slow
@pytest.mark.parametrize("malloc", ["pymalloc_debug", "malloc_debug"])
def test_chains_of_observed_operations_are_freed_without_harm(malloc: str) -> None:
    # Coverage's tracer would start in the program, and triple its time.
    untraced = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-c", CHAINS],
        env={**untraced, "PYTHONMALLOC": malloc},
        text=True,
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"{COMPILED} ")
