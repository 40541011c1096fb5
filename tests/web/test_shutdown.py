"""A signal to stop closes the purgatories, and whoever handled it before still does."""

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
    """What a server, which sets its handlers before the application starts, has been told."""
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


async def test_a_second_signal_goes_to_the_server_alone(handled: list[int]) -> None:
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


async def test_a_signal_that_nobody_handles_keeps_its_effect(
    handled: list[int], purgatory: Purgatory
) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    async with close_on_signal(purgatory):
        assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


class SlowToClose:
    """Stands for a purgatory that has much to expire."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.may_end = asyncio.Event()
        self.ended = False

    async def aclose(self) -> None:
        self.begun.set()
        await self.may_end.wait()
        self.ended = True


async def test_leaving_waits_for_what_is_being_closed(handled: list[int]) -> None:
    slow = SlowToClose()
    async with close_on_signal(cast(Purgatory, slow)):
        signal.raise_signal(signal.SIGTERM)
        await slow.begun.wait()
        asyncio.get_running_loop().call_soon(slow.may_end.set)
    assert slow.ended


def test_in_another_thread_it_does_nothing(handled: list[int]) -> None:
    server = signal.getsignal(signal.SIGTERM)
    seen = []

    async def serve() -> None:
        async with Purgatory() as purgatory, close_on_signal(purgatory):
            seen.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=asyncio.run, args=[serve()])
    thread.start()
    thread.join()
    assert seen == [server]


async def test_an_exception_goes_through_as_it_is(handled: list[int], purgatory: Purgatory) -> None:
    with pytest.raises(ZeroDivisionError):
        async with close_on_signal(purgatory):
            raise ZeroDivisionError
