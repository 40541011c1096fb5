"""The dict of waiters: whatever ends a wait leaves nothing of it."""

from __future__ import annotations

import asyncio

from benchmarks.designs.call_at import CallAt
from benchmarks.designs.callback_dict import CallbackDict, Waiter
from purgatory.testing import VirtualTimeLoop


class Noted(Waiter):
    """Writes down how it ended."""

    __slots__ = ("outcomes", "ready")

    ready: bool

    def __init__(self) -> None:
        self.ready = False
        self.outcomes: list[str] = []

    def complete(self) -> None:
        self.outcomes.append("completed")

    def time_out(self) -> None:
        self.outcomes.append("timed out")


async def test_a_check_completes_those_that_are_ready_and_takes_them_off_all_their_keys(
    virtual_time: VirtualTimeLoop,
) -> None:
    callbacks = CallbackDict(CallAt(virtual_time))
    waiters = [Noted() for _ in range(3)]
    for waiter in waiters:
        callbacks.watch(waiter, ("a", "b"), 1.0)
    callbacks.check("a")
    callbacks.check("nobody watches it")
    assert (callbacks.watched(), len(callbacks.timer)) == (6, 3)
    waiters[1].ready = True
    callbacks.check("b")
    assert [waiter.outcomes for waiter in waiters] == [[], ["completed"], []]
    assert (callbacks.watched(), len(callbacks.timer)) == (4, 2)
    await asyncio.sleep(2.0)
    assert [waiter.outcomes for waiter in waiters] == [["timed out"], ["completed"], ["timed out"]]
    assert (callbacks.watched(), len(callbacks.timer)) == (0, 0)


async def test_closing_withdraws_what_is_pending(virtual_time: VirtualTimeLoop) -> None:
    callbacks = CallbackDict(CallAt(virtual_time))
    waiter = Noted()
    callbacks.watch(waiter, ("a", "b"), 1.0)
    callbacks.close()
    await asyncio.sleep(0)
    assert virtual_time.idle_for() is None
    assert (callbacks.watched(), waiter.outcomes) == (0, [])
