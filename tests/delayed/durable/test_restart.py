"""Operations that are pending come back with the next process, and end at their deadlines."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from purgatory import Purgatory
from purgatory.delayed import DelayedMessages, DurableOperations
from tests.delayed.durable.shop import PaymentDue, Shop, opened, pending, until_gone


async def test_a_pending_operation_comes_back_with_its_keys_and_the_time_that_is_left(
    path: Path, shop: Shop
) -> None:
    async with opened(path, shop) as operations:
        await operations.offer(shop.payment("tea", 3600), ["tea", ("group", 7, None)])
        await operations.offer(shop.payment("milk", 3600), ["milk"])
        await asyncio.sleep(600)
    assert shop.done == []
    await asyncio.sleep(1000)
    async with opened(path, shop) as operations:
        assert {order for order, _ in shop.events("restored")} == {"tea", "milk"}
        (tea,) = operations.purgatory.operations("tea")
        assert tea.keys == ("tea", ("group", 7, None))
        assert tea.timeout == pytest.approx(2000)
        shop.paid.add("tea")
        assert operations.purgatory.check_and_complete(("group", 7, None)) == 1
        (milk,) = operations.purgatory.operations("milk")
        assert await milk == "expired"
        await until_gone()
    assert shop.events("expired") == [("milk", 3600)]
    assert pending(path) == 0


async def test_an_overdue_operation_is_tried_once_and_expires_at_once(path: Path, shop: Shop) -> None:
    async with opened(path, shop) as operations:
        for order in ("tea", "milk"):
            await operations.offer(shop.payment(order, 60), [order])
    await asyncio.sleep(100_000)
    shop.paid.add("tea")
    async with opened(path, shop) as operations:
        assert shop.events("expired") == [("milk", 100_000)]
        await until_gone()
        assert pending(path) == 0
        await asyncio.sleep(100)
    assert len(shop.events("restored")) == 2
    assert len(shop.events("expired")) == 1


async def test_overdue_operations_expire_when_all_others_are_back(path: Path, shop: Shop) -> None:
    async with opened(path, shop) as operations:
        for number in range(250):
            await operations.offer(shop.payment(f"late {number}", 60), ["late"])
        await operations.offer(shop.payment("tea", 7200), ["tea"])
    await asyncio.sleep(3600)
    back: list[int] = []
    async with Purgatory() as purgatory:

        class Counted(PaymentDue):
            def on_expiration(self) -> None:
                back.append(len(purgatory.operations("tea")))

        factories = {"payment": lambda payload, timeout: Counted(shop, payload.decode(), timeout)}
        async with DurableOperations(purgatory, path, factories, clock=shop.clock):
            assert back == [1] * 250


async def test_an_operation_that_a_factory_gives_more_time_gets_a_new_message(path: Path, shop: Shop) -> None:
    async with opened(path, shop) as operations:
        await operations.offer(shop.payment("tea", 60), ["tea"])
    await asyncio.sleep(1000)
    async with Purgatory() as purgatory:
        factories = {"payment": lambda payload, timeout: shop.payment(payload.decode(), max(timeout, 600))}
        async with DurableOperations(purgatory, path, factories, clock=shop.clock) as operations:
            await asyncio.sleep(100)
            assert len(operations) == pending(path) == 1
            assert shop.done == []
            await asyncio.sleep(600)
    assert shop.events("expired") == [("tea", 1600)]
    assert pending(path) == 0


async def test_a_message_that_is_due_while_others_are_brought_back_waits_for_them(
    path: Path, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(path, shop) as operations:
        await operations.offer(shop.payment("tea", 60), ["tea"])
    await asyncio.sleep(1000)
    usual = DelayedMessages.pending

    async def slow(self: DelayedMessages) -> AsyncIterator[Any]:
        await asyncio.sleep(100)
        async for message in usual(self):
            yield message

    monkeypatch.setattr(DelayedMessages, "pending", slow)
    async with opened(path, shop):
        await asyncio.sleep(100)
    assert shop.events("restored") == shop.events("expired") == [("tea", 1100)]
    assert pending(path) == 0


async def test_an_entry_that_fails_leaves_nothing_in_the_purgatory(
    path: Path, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(path, shop) as operations:
        await operations.offer(shop.payment("tea", 600), ["tea"])
    usual = DelayedMessages.pending

    async def failing(self: DelayedMessages) -> AsyncIterator[Any]:
        async for message in usual(self):
            yield message
        raise OSError("the disk fails")

    async with Purgatory() as purgatory:
        with monkeypatch.context() as patched:
            patched.setattr(DelayedMessages, "pending", failing)
            with pytest.raises(OSError, match="the disk fails"):
                async with DurableOperations(purgatory, path, {"payment": shop.restore}, clock=shop.clock):
                    pass
        assert purgatory.operations() == []
        factories = {"payment": shop.restore}
        async with DurableOperations(purgatory, path, factories, clock=shop.clock) as operations:
            assert len(operations) == 1


OFFERS_AND_CRASHES = """
import asyncio, os, sys
from purgatory import Purgatory
from purgatory.delayed import DurableOperation, DurableOperations

class Payment(DurableOperation[None]):
    kind = "payment"
    def payload(self):
        return b"tea"
    def try_complete(self):
        return False

async def main():
    async with Purgatory() as purgatory:
        factories = {"payment": print}
        async with DurableOperations(purgatory, sys.argv[1], factories, clock=lambda: 1.9e9) as operations:
            await operations.offer(Payment(3600), ["tea"])
            os._exit(9)

asyncio.run(main())
"""


async def test_an_operation_that_was_offered_survives_a_crash(path: Path, shop: Shop) -> None:
    crashed = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", OFFERS_AND_CRASHES, str(path)], check=False, timeout=60
    )
    assert crashed.returncode == 9
    async with opened(path, shop) as operations:
        (operation,) = operations.purgatory.operations("tea")
        assert await operation == "expired"
    assert shop.events("expired") == [("tea", 3600)]
