"""A stop signal closes the purgatories, and still reaches the server's own handler."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import cast

import pytest

from purgatory import Purgatory
from purgatory.web import close_on_signal
from tests.operations import Gate


@pytest.fixture
def handled() -> Iterator[list[int]]:
    """The signals that a server's own handlers received. A server sets them before the application starts."""
    numbers: list[int] = []

    def server(number: int, frame: FrameType | None) -> None:
        numbers.append(number)

    before = {number: signal.signal(number, server) for number in (signal.SIGINT, signal.SIGTERM)}
    yield numbers
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_a_signal_expires_what_is_pending(handled: list[int], number: int) -> None:
    async with Purgatory("a") as one, Purgatory("b") as other, close_on_signal(one, other):
        gates = [one.try_complete_else_watch(Gate(name="empty"), ["key"]) for _ in range(3)]
        gates.append(other.try_complete_else_watch(Gate(name="empty"), ["key"]))
        signal.raise_signal(number)
        assert await asyncio.gather(*gates) == ["empty"] * 4
        assert all(gate.expired for gate in gates)
        assert handled == [number]


@pytest.mark.real_time
async def test_a_signal_wakes_a_loop_that_has_nothing_to_do(handled: list[int], purgatory: Purgatory) -> None:
    async with close_on_signal(purgatory):
        gate = purgatory.try_complete_else_watch(Gate(), ["key"])
        # By then, the loop sleeps.
        sender = threading.Timer(0.05, os.kill, [os.getpid(), signal.SIGTERM])
        sender.start()
        await gate
        sender.join(30)
        assert not sender.is_alive()
    assert gate.expired


async def test_a_second_signal_reaches_the_server_too(handled: list[int]) -> None:
    async with Purgatory() as purgatory, close_on_signal(purgatory):
        gate = purgatory.try_complete_else_watch(Gate(), ["key"])
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGINT)
        await gate
    assert sorted(handled) == [signal.SIGINT, signal.SIGTERM]


async def test_leaving_restores_the_handlers_and_closes_nothing(
    handled: list[int], purgatory: Purgatory
) -> None:
    server = signal.getsignal(signal.SIGTERM)
    async with close_on_signal(purgatory):
        assert signal.getsignal(signal.SIGTERM) is not server
    assert signal.getsignal(signal.SIGTERM) is server
    signal.raise_signal(signal.SIGTERM)
    assert purgatory.try_complete_else_watch(Gate(), ["key"]).cancel()


async def test_a_handler_set_later_is_left_in_place(handled: list[int], purgatory: Purgatory) -> None:
    async with close_on_signal(purgatory):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN


async def test_a_signal_without_a_handler_keeps_its_effect(handled: list[int], purgatory: Purgatory) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    async with close_on_signal(purgatory):
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


async def test_a_process_that_handles_no_signal_is_warned_that_this_has_no_effect(
    handled: list[int], purgatory: Purgatory
) -> None:
    """The worker processes of hypercorn are such ones."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    async with close_on_signal(purgatory):
        pass
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    with pytest.warns(RuntimeWarning, match="close_on_signal has no effect") as warned:
        async with close_on_signal(purgatory):
            pass
    assert warned[0].filename == __file__


class SlowToClose:
    """A purgatory that takes long to close."""

    def __init__(self) -> None:
        self.started = asyncio.Event()
        self.may_finish = asyncio.Event()
        self.finished = False

    async def aclose(self) -> None:
        self.started.set()
        await self.may_finish.wait()
        self.finished = True


async def test_leaving_waits_until_the_purgatories_are_closed(handled: list[int]) -> None:
    slow = SlowToClose()
    async with close_on_signal(cast(Purgatory, slow)):
        signal.raise_signal(signal.SIGTERM)
        await slow.started.wait()
        asyncio.get_running_loop().call_soon(slow.may_finish.set)
    assert slow.finished


def test_in_another_thread_the_handlers_stay(handled: list[int]) -> None:
    server = signal.getsignal(signal.SIGTERM)
    seen = []

    async def serve() -> None:
        async with Purgatory() as purgatory, close_on_signal(purgatory):
            seen.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=asyncio.run, args=[serve()])
    thread.start()
    thread.join(30)
    assert not thread.is_alive()
    assert seen == [server]


async def test_an_exception_leaves_the_block_unchanged(handled: list[int], purgatory: Purgatory) -> None:
    with pytest.raises(ZeroDivisionError):
        async with close_on_signal(purgatory):
            raise ZeroDivisionError
