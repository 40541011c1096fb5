"""A delivery that hangs does not keep the service from stopping, and the log names it."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest

from purgatory.delayed import StoreFailed
from tests.delayed.service import BEGIN, Delivered, Service


async def hang(_: Delivered) -> None:
    await asyncio.sleep(1_000)


def going_on(seconds: float) -> tuple[Callable[[Delivered], Awaitable[None]], list[str]]:
    """A delivery that takes so long, whoever cancels it, and the ids of those that were cancelled."""
    cancelled: list[str] = []

    async def handle(attempt: Delivered) -> None:
        clock = asyncio.get_running_loop().time
        end = clock() + seconds
        while clock() < end and len(cancelled) < 100:
            try:
                await asyncio.sleep(end - clock())
            except asyncio.CancelledError:
                cancelled.append(attempt.id)

    return handle, cancelled


async def test_a_delivery_that_hangs_is_cancelled_after_the_close_timeout_and_comes_again(
    service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    service.handle = hang
    async with service.store(close_timeout=5) as delayed:
        await delayed.schedule(b"payload", at=BEGIN, id="order 7")
        await asyncio.sleep(1)
    assert BEGIN + 6 <= service.wall() < BEGIN + 6.1
    assert [record.getMessage() for record in caplog.records] == [
        "closing waits for deliveries, at most 5 s: 'order 7'"
    ]
    service.handle = service._take
    async with service.store() as delayed:
        await asyncio.sleep(1)
    assert [delivered.id for delivered in service.delivered] == ["order 7"]


async def test_the_close_timeout_is_twenty_seconds_unless_it_is_chosen(service: Service) -> None:
    service.handle = hang
    async with service.store() as delayed:
        await delayed.schedule(b"payload", at=BEGIN)
        await asyncio.sleep(1)
    assert BEGIN + 21 <= service.wall() < BEGIN + 21.1


async def test_without_a_close_timeout_leaving_waits_until_the_delivery_ends(
    service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    service.handle = hang
    async with service.store(close_timeout=None) as delayed:
        await delayed.schedule(b"payload", at=BEGIN, id="order 7")
        await asyncio.sleep(1)
    assert service.payloads == [b"payload"]
    assert [record.getMessage() for record in caplog.records] == [
        "closing waits for deliveries, without a limit: 'order 7'"
    ]


async def test_deliveries_that_end_within_a_second_are_not_worth_a_warning(
    service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    async def handle(attempt: Delivered) -> None:
        await asyncio.sleep(1.5)

    service.handle = handle
    async with service.store() as delayed:
        await delayed.schedule(b"payload", at=BEGIN)
        await asyncio.sleep(1)
    assert service.payloads == [b"payload"]
    assert caplog.records == []


async def test_a_close_timeout_of_zero_cancels_at_once(
    service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    service.handle = hang
    async with service.store(close_timeout=0) as delayed:
        await delayed.schedule(b"payload", at=BEGIN, id="order 7")
        await asyncio.sleep(1)
    assert service.wall() < BEGIN + 1.1
    assert "'order 7'" in caplog.text


async def test_ten_deliveries_are_named_and_the_others_counted(
    service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    service.handle = hang
    async with service.store() as delayed:
        for number in range(13):
            await delayed.schedule(b"payload", at=BEGIN, id=f"order {number}")
        await asyncio.sleep(1)
    assert caplog.records[0].getMessage().endswith("'order 8', 'order 9', and 3 others")


@pytest.mark.parametrize("error", [None, ValueError])
async def test_a_delivery_that_goes_on_after_its_cancellation_is_named(
    service: Service, caplog: pytest.LogCaptureFixture, error: type[Exception] | None
) -> None:
    service.handle, cancelled = going_on(60)

    async def serve() -> None:
        async with service.store(close_timeout=5) as delayed:
            await delayed.schedule(b"payload", at=BEGIN, id="order 7")
            await asyncio.sleep(1)
            if error is not None:
                raise error

    if error is None:
        await serve()
    else:
        with pytest.raises(error):
            await serve()
    assert "closing waits for deliveries, which were cancelled and go on: 'order 7'" in caplog.text
    assert service.payloads == [b"payload"]
    # Once. A cancellation that comes back at each turn of the loop would keep the processor busy.
    assert cancelled == ["order 7"]


async def test_a_delivery_that_is_cancelled_has_time_to_clean_up(service: Service) -> None:
    cleaned: list[str] = []

    async def handle(attempt: Delivered) -> None:
        try:
            await asyncio.sleep(1_000)
        finally:
            await asyncio.sleep(1)
            cleaned.append(attempt.id)

    service.handle = handle
    async with service.store(close_timeout=5) as delayed:
        await delayed.schedule(b"payload", at=BEGIN, id="order 7")
        await asyncio.sleep(1)
    assert cleaned == ["order 7"]


@pytest.mark.parametrize("thread", ["log", "mover"])
async def test_a_delivery_that_goes_on_when_the_store_fails_is_the_last_one_of_its_worker(
    service: Service, thread: str
) -> None:
    service.handle, cancelled = going_on(60)

    async def serve() -> None:
        async with service.store(workers=1) as delayed:
            for _ in range(3):
                await delayed.schedule(b"payload", at=BEGIN)
            await asyncio.sleep(1)
            service.disk.fail("sync", thread=thread)
            with suppress(StoreFailed):
                await delayed.schedule(b"later", at=BEGIN + 60)
            await asyncio.sleep(1_000)

    with pytest.raises(StoreFailed):
        await serve()
    assert len(service.attempts) == len(cancelled) == 1


@pytest.mark.parametrize("seconds", [-1, math.nan, math.inf])
async def test_a_close_timeout_that_is_no_time_is_refused(service: Service, seconds: float) -> None:
    with pytest.raises(ValueError, match="close_timeout must be a number of seconds from 0 on, or None, not"):
        service.store(close_timeout=seconds)
