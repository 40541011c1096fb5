"""An operation with a new timeout gets a new message."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path
from typing import Any

import pytest

from purgatory.delayed import DelayedMessages, Receipt
from tests.delayed.durable.shop import Shop, opened, pending, until_gone


async def test_a_rescheduled_operation_stays_on_the_disk(path: Path, shop: Shop) -> None:
    async with opened(path, shop) as operations:
        operation = await operations.offer(shop.payment("tea", 60), ["tea"])
        await asyncio.sleep(50)
        operation.reschedule(3600)
        await asyncio.sleep(1000)
        assert shop.done == []
        assert pending(path) == len(operations) == 1
    async with opened(path, shop) as operations:
        (back,) = operations.purgatory.operations()
        assert back.timeout == pytest.approx(2600)
        assert await back == "expired"
        await until_gone()
        assert pending(path) == 0
    assert shop.events("expired") == [("tea", 3650)]


@pytest.mark.parametrize("step", [0.0, -40.0])
async def test_a_crash_between_the_new_message_of_a_rescheduled_operation_and_the_end_of_the_old_one(
    path: Path, shop: Shop, monkeypatch: pytest.MonkeyPatch, step: float
) -> None:
    """One operation comes back, also if the wall clock says that the old message is not overdue."""
    crashed = path.with_name("crashed")
    usual = DelayedMessages.schedule

    async def crash_behind(self: DelayedMessages, payload: bytes, **options: Any) -> Receipt:
        receipt = await usual(self, payload, **options)
        shutil.copytree(path, crashed)
        return receipt

    async with opened(path, shop) as operations:
        operation = await operations.offer(shop.payment("tea", 60), ["tea"])
        operation.reschedule(3600)
        with monkeypatch.context() as patched:
            patched.setattr(DelayedMessages, "schedule", crash_behind)
            await asyncio.sleep(62)
    assert pending(crashed) == 2
    before = shop.clock
    shop.clock = lambda: before() + step
    async with opened(crashed, shop) as operations:
        await until_gone()
        assert len(operations.purgatory.operations()) == len(operations) == 1
        await asyncio.sleep(100)
        assert pending(crashed) == 1
        assert shop.events("expired") == []
        (back,) = operations.purgatory.operations()
        assert await back == "expired"
    assert shop.events("expired") == [("tea", 3600)]


async def test_an_operation_that_was_rescheduled_to_never_expire_stays_on_the_disk(
    path: Path, shop: Shop
) -> None:
    async with opened(path, shop) as operations:
        operation = await operations.offer(shop.payment("tea", 60), ["tea"])
        operation.reschedule(None)
        await asyncio.sleep(1000)
        assert pending(path) == 1
    async with opened(path, shop) as operations:
        (back,) = operations.purgatory.operations()
        assert back.timeout is not None
        assert back.timeout > 3e9
