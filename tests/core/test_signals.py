"""Signals: checks that other threads request through `check_and_complete_threadsafe`."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Hashable
from contextvars import Context
from typing import Any, TypeVarTuple

import pytest

from purgatory import DelayedOperation, Purgatory
from purgatory.observer import Timing
from purgatory.testing import ManualClock
from tests.operations import Gate, a_few_turns

Ts = TypeVarTuple("Ts")


class CheckedKeys:
    def __init__(self) -> None:
        self.keys: list[Hashable] = []

    def operation_finished(self, purgatory: str, operation: DelayedOperation[Any], timing: Timing) -> None:
        pass

    def key_checked(self, purgatory: str, key: Hashable, tried: int, completed: int, at: float) -> None:
        self.keys.append(key)


class CountingClock(ManualClock):
    def __init__(self) -> None:
        self.woken = 0
        super().__init__()

    def call_soon_threadsafe(
        self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        self.woken += 1
        return self.call_soon(callback, *args, context=context)


async def test_a_signal_from_a_thread_completes_an_operation(purgatory: Purgatory) -> None:
    def produce() -> None:
        gate.opened = True
        purgatory.check_and_complete_threadsafe("key")

    gate = purgatory.try_complete_else_watch(Gate(60, "signalled"), ["key"])
    producing = asyncio.create_task(asyncio.to_thread(produce))
    assert await gate == "signalled"
    await producing


async def test_a_signal_from_the_loops_own_thread_is_checked_later_as_well(purgatory: Purgatory) -> None:
    gate = purgatory.try_complete_else_watch(Gate(60), ["key"])
    gate.opened = True
    purgatory.check_and_complete_threadsafe("key")
    assert not gate.done
    assert await gate == "gate"


async def test_an_operation_that_is_offered_before_the_signal_is_checked_comes_first(
    purgatory: Purgatory,
) -> None:
    free: list[str] = []

    def take() -> str | None:
        return free.pop() if free else None

    first = asyncio.create_task(purgatory.wait_until(take, ["free"]))
    await a_few_turns()
    free.append("permit")
    purgatory.check_and_complete_threadsafe("free")
    assert await purgatory.wait_until(take, ["free"]) == "permit"
    await a_few_turns()
    assert not first.done()
    first.cancel()


async def test_many_threads_cost_one_check_per_distinct_key() -> None:
    def signal() -> None:
        together.wait(30)
        for number in range(1_000):
            purgatory.check_and_complete_threadsafe(number % 10)

    checked = CheckedKeys()
    together = threading.Barrier(8)
    async with Purgatory(observers=[checked]) as purgatory:
        gates = [purgatory.try_complete_else_watch(Gate(60), [n % 10]) for n in range(50)]
        for gate in gates:
            gate.opened = True
        threads = [threading.Thread(target=signal) for _ in range(8)]
        for thread in threads:
            thread.start()
        # The loop is blocked until all threads have ended.
        for thread in threads:
            thread.join(30)
            assert not thread.is_alive()
        assert checked.keys == []
        await asyncio.gather(*gates)
        assert sorted(map(str, checked.keys)) == [str(n) for n in range(10)]


def test_many_signals_cost_one_wake_up_until_the_loop_has_checked_them() -> None:
    clock = CountingClock()
    checked = CheckedKeys()
    purgatory = clock.purgatory(observers=[checked])
    for _ in range(3):
        for number in range(1_000):
            purgatory.check_and_complete_threadsafe(number % 7)
        clock.advance(0)
    assert clock.woken == 3
    assert checked.keys == list(range(7)) * 3


def test_signals_while_the_loop_runs_the_checks_are_not_lost() -> None:
    clock = CountingClock()
    purgatory = clock.purgatory()
    gate = purgatory.try_complete_else_watch(Gate(), ["key"])
    signals = [lambda: setattr(gate, "opened", True), lambda: None, lambda: None]

    def signal_again() -> None:
        if signals:
            signals.pop()()
            purgatory.check_and_complete_threadsafe("key")

    gate.trying = signal_again
    purgatory.check_and_complete_threadsafe("key")
    clock.advance(0)
    assert gate.done
    assert clock.woken == 4


def test_keys_are_checked_in_the_order_of_their_first_signal() -> None:
    clock = ManualClock()
    checked = CheckedKeys()
    purgatory = clock.purgatory(observers=[checked])
    for key in ("b", "a", "b", None, "a", "c"):
        purgatory.check_and_complete_threadsafe(key)
    clock.advance(0)
    assert checked.keys == ["b", "a", None, "c"]


async def test_threads_that_signal_while_the_loop_checks_lose_nothing(purgatory: Purgatory) -> None:
    def produce(number: int) -> None:
        for gate in gates[number::4]:
            gate.opened = True
            purgatory.check_and_complete_threadsafe(gate.name)

    gates = [purgatory.try_complete_else_watch(Gate(60, str(n)), [str(n)]) for n in range(2_000)]
    async with asyncio.TaskGroup() as group:
        for number in range(4):
            group.create_task(asyncio.to_thread(produce, number))
        await asyncio.gather(*gates)
    assert purgatory.statistics().completed == 2_000


async def test_a_signal_after_close_does_nothing(reported: list[dict[str, Any]]) -> None:
    checked = CheckedKeys()
    never_opened = Purgatory()
    await never_opened.aclose()
    never_opened.check_and_complete_threadsafe("key")
    async with Purgatory(observers=[checked]) as purgatory:
        pass
    purgatory.check_and_complete_threadsafe("key")
    await asyncio.to_thread(purgatory.check_and_complete_threadsafe, "key")
    await a_few_turns()
    assert checked.keys == []
    assert reported == []


async def test_a_signal_that_is_pending_at_close_does_not_complete_twice(purgatory: Purgatory) -> None:
    gate = purgatory.try_complete_else_watch(Gate(60), ["key"])
    gate.opened = True
    purgatory.check_and_complete_threadsafe("key")
    await purgatory.aclose()
    assert gate.done
    assert gate.ran.count("on_complete") == 1


async def test_an_unhashable_key_is_refused_in_the_thread_that_signals(purgatory: Purgatory) -> None:
    with pytest.raises(TypeError):
        await asyncio.to_thread(purgatory.check_and_complete_threadsafe, [])  # type: ignore[arg-type]
    gate = purgatory.try_complete_else_watch(Gate(60), ["key"])
    gate.opened = True
    purgatory.check_and_complete_threadsafe("key")
    assert await gate == "gate"


async def test_a_signal_after_the_loop_was_closed_raises_and_does_not_deadlock() -> None:
    def run() -> Purgatory:
        loop = asyncio.new_event_loop()
        purgatory = Purgatory()
        purgatory._open_on(loop)
        loop.close()
        return purgatory

    purgatory = await asyncio.to_thread(run)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="closed"):
            purgatory.check_and_complete_threadsafe("key")


def test_a_signal_made_during_a_signal_does_not_deadlock() -> None:
    class Key:
        """A key that signals while it is hashed. A finalizer can do so, too, and may run at any moment."""

        def __hash__(self) -> int:
            if not inside:
                inside.append("signalled")
                purgatory.check_and_complete_threadsafe("inner")
            return 1

    inside: list[str] = []
    clock = ManualClock()
    purgatory = clock.purgatory()
    gate = purgatory.try_complete_else_watch(Gate(), ["inner"])
    gate.opened = True
    thread = threading.Thread(target=purgatory.check_and_complete_threadsafe, args=[Key()], daemon=True)
    thread.start()
    thread.join(timeout=5)
    assert not thread.is_alive()
    assert inside == ["signalled"]
    clock.advance(0)
    assert gate.done


async def test_hooks_run_in_the_loops_thread(purgatory: Purgatory) -> None:
    threads: list[int] = []
    gate = purgatory.try_complete_else_watch(Gate(60), ["key"])
    gate.trying = gate.completing = lambda: threads.append(threading.get_ident())
    gate.opened = True
    await asyncio.to_thread(purgatory.check_and_complete_threadsafe, "key")
    await gate
    assert threads == [threading.get_ident()] * 2
