"""What `deliver` may be: a mistake in it is told at once, and no message is delivered ten times for it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import pytest

from purgatory.delayed import DelayedMessages, StoreFailed
from tests.delayed.service import BEGIN, PATH, Service


async def without_due(id: str, payload: bytes) -> None: ...


async def with_more(id: str, payload: bytes, due: float, attempt: int) -> None: ...


async def with_keywords(*, id: str, payload: bytes, due: float) -> None: ...


@pytest.mark.parametrize(
    ("deliver", "complaint"),
    [
        (None, "deliver must be a function, not NoneType"),
        ("deliver", "deliver must be a function, not str"),
        (without_due, r"deliver is called with \(id, payload, due\): too many positional arguments"),
        (with_more, r"deliver is called with \(id, payload, due\): missing a required argument: 'attempt'"),
        (with_keywords, r"deliver is called with \(id, payload, due\): too many positional arguments"),
    ],
)
def test_a_deliver_that_cannot_be_called_is_refused(deliver: Any, complaint: str) -> None:
    with pytest.raises(TypeError, match=complaint):
        DelayedMessages(PATH, deliver)


def test_a_deliver_whose_arguments_nobody_knows_is_not_refused() -> None:
    # `dict` is written in C, and has no signature.
    DelayedMessages(PATH, dict)  # type: ignore[arg-type]  # It is only made.


@pytest.mark.parametrize("workers", [1, 100])
async def test_a_plain_function_is_called_once_and_the_store_fails(
    service: Service, caplog: pytest.LogCaptureFixture, workers: int
) -> None:
    sent: list[str] = []

    def deliver(id: str, payload: bytes, due: float) -> bool:
        sent.append(id)
        return True

    delayed = DelayedMessages(
        PATH,
        deliver,  # type: ignore[arg-type]  # This is the mistake.
        workers=workers,
        clock=service.wall,
        disk=service.disk,
    )

    async def serve() -> None:
        async with delayed:
            for number in range(5):
                await delayed.schedule(b"payload", at=BEGIN + 1, id=f"message {number}")
            await asyncio.sleep(1_000)
            assert len(sent) == 1
            with pytest.raises(StoreFailed, match="is closed: deliver must be a coroutine function"):
                await delayed.schedule(b"payload", at=BEGIN + 60)

    complaint = "it returned True, which cannot be awaited; write `async def`"
    with pytest.raises(TypeError, match=complaint):
        await serve()
    assert len(sent) == 1
    assert [record.levelno for record in caplog.records] == [logging.CRITICAL]
    assert delayed.statistics().failures == 0
    # Nobody knows what the call has done. The mended program gets the message again.
    async with service.store():
        await asyncio.sleep(1)
    assert sorted(each.id for each in service.delivered) == [f"message {number}" for number in range(5)]


class Handler:
    def __init__(self, service: Service) -> None:
        self._service = service

    async def __call__(self, id: str, payload: bytes, due: float) -> None:
        await self._service.deliver(id, payload, due)


AWAITED: dict[str, Callable[[Service], Callable[[str, bytes, float], Awaitable[object]]]] = {
    "a lambda": lambda service: lambda id, payload, due: service.deliver(id, payload, due),
    "a partial": lambda service: partial(service.deliver),
    "an object": Handler,
    "a function of a task": lambda service: lambda *message: asyncio.ensure_future(service.deliver(*message)),
}


@pytest.mark.parametrize("kind", AWAITED)
async def test_whatever_returns_an_awaitable_is_a_deliver(service: Service, kind: str) -> None:
    deliver = AWAITED[kind](service)
    async with DelayedMessages(PATH, deliver, clock=service.wall, disk=service.disk) as delayed:
        await delayed.schedule(b"payload", at=BEGIN + 1)
        await asyncio.sleep(2)
    assert service.payloads == [b"payload"]
