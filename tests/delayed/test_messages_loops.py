"""A store belongs to the event loop in which it was entered."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import pytest

from purgatory.delayed import DelayedMessages, Receipt
from tests.delayed.service import BEGIN, Service


async def listed(messages: AsyncIterator[object]) -> list[object]:
    return [message async for message in messages]


CALLS: dict[str, Callable[[DelayedMessages, Receipt], Coroutine[Any, Any, object]]] = {
    "schedule": lambda delayed, receipt: delayed.schedule(b"payload", at=BEGIN + 1),
    "cancel": lambda delayed, receipt: delayed.cancel(receipt),
    "find": lambda delayed, receipt: delayed.find("id"),
    "pending": lambda delayed, receipt: listed(delayed.pending()),
    "dead_letters": lambda delayed, receipt: listed(delayed.dead_letters()),
    "failed": lambda delayed, receipt: delayed.failed(),
}


@pytest.mark.parametrize("call", CALLS)
async def test_another_event_loop_is_refused_before_anything_is_written(service: Service, call: str) -> None:
    async with service.store() as delayed:
        receipt = await delayed.schedule(b"first", at=BEGIN + 60, id="id")
        written = delayed.statistics().log_bytes
        with pytest.raises(RuntimeError, match=r"another event loop: .* asyncio\.run_coroutine_threadsafe"):
            await asyncio.to_thread(asyncio.run, asyncio.wait_for(CALLS[call](delayed, receipt), 10))
        await asyncio.sleep(10)
        assert delayed.statistics().log_bytes == written
        assert delayed.statistics().scheduled == 1
        assert service.delivered == []


async def test_another_thread_schedules_by_run_coroutine_threadsafe(service: Service) -> None:
    loop = asyncio.get_running_loop()

    def schedule() -> Receipt:
        return asyncio.run_coroutine_threadsafe(delayed.schedule(b"payload", at=BEGIN + 1), loop).result(30)

    async with service.store() as delayed:
        await asyncio.to_thread(schedule)
        await asyncio.sleep(2)
    assert service.payloads == [b"payload"]
