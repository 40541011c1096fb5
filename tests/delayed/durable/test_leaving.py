"""Leaving durable operations, or closing their purgatory, leaves their messages on the disk."""

from __future__ import annotations

import asyncio
import gc
import weakref
from pathlib import Path

import pytest

from purgatory import DelayedValue, OperationState, Purgatory
from purgatory.delayed import DurableOperations
from purgatory.errors import OperationWithdrawn
from tests.delayed.durable.shop import Shop, opened, pending, until_gone


async def test_leaving_withdraws_what_is_pending_and_runs_no_hook(path: Path, shop: Shop) -> None:
    async with Purgatory() as purgatory:
        async with DurableOperations(
            purgatory, path, {"payment": shop.restore}, clock=shop.clock
        ) as operations:
            operation = await operations.offer(shop.payment("tea", 60), ["tea"])
            waiting = asyncio.ensure_future(operation)
            await asyncio.sleep(0)
        with pytest.raises(OperationWithdrawn):
            await waiting
        assert purgatory.operations() == []
    assert shop.done == []
    assert pending(path) == 1


async def test_a_purgatory_keeps_nothing_of_what_was_left(path: Path, shop: Shop) -> None:
    async with Purgatory() as purgatory:
        left = []
        for _ in range(2):
            operations = DurableOperations(purgatory, path, {"payment": shop.restore}, clock=shop.clock)
            async with operations:
                await operations.offer(shop.payment("tea", 60), ["tea"])
            left.append(weakref.ref(operations))
            del operations
        gc.collect()
        assert [reference() for reference in left] == [None, None]


async def test_leaving_that_is_cancelled_first_takes_what_has_ended_from_the_disk(
    path: Path, shop: Shop
) -> None:
    async def serve() -> None:
        async with opened(path, shop) as operations:
            operation = await operations.offer(shop.payment("tea", 60), ["tea"])
            operation.complete("paid")
            serving.cancel()

    serving = asyncio.create_task(serve())
    with pytest.raises(asyncio.CancelledError):
        await serving
    assert pending(path) == 0


@pytest.mark.parametrize("cancel_pending", [True, False])
async def test_closing_the_purgatory_first_leaves_the_messages(
    path: Path, shop: Shop, cancel_pending: bool
) -> None:
    async with opened(path, shop) as operations:
        await operations.offer(shop.payment("tea", 60), ["tea"])
        await operations.purgatory.aclose(cancel_pending=cancel_pending)
        # Its message is due meanwhile, and cannot be used.
        await asyncio.sleep(600)
    assert pending(path) == 1
    shop.done.clear()
    async with opened(path, shop):
        assert shop.events("expired") == [("tea", 600)]


async def test_what_completes_while_the_purgatory_closes_is_gone(path: Path, shop: Shop) -> None:
    class First(DelayedValue[None]):
        def on_expiration(self) -> None:
            tea.force_complete()

    async with opened(path, shop) as operations:
        operations.purgatory.try_complete_else_watch(First(60), ["first"])
        tea = await operations.offer(shop.payment("tea", 60), ["tea"])
        milk = await operations.offer(shop.payment("milk", 60), ["milk"])
        await operations.purgatory.aclose()
        assert (tea.state, milk.state) == (OperationState.COMPLETED, OperationState.EXPIRED)
    assert pending(path) == 1


async def test_several_share_a_purgatory_with_other_operations(path: Path, shop: Shop) -> None:
    async with (
        opened(path, shop) as first,
        DurableOperations(
            first.purgatory, path.with_name("other"), {"payment": shop.restore}, clock=shop.clock
        ) as second,
    ):
        for operations in (first, second):
            await operations.offer(shop.payment("tea", 3600), ["tea"])
        payment = shop.payment("tea", 3600)
        with pytest.raises(TypeError, match=r"is durable: offer it by DurableOperations\.offer\(\)"):
            first.purgatory.try_complete_else_watch(payment, ["tea"])
        await second.offer(payment, ["tea"])
        first.purgatory.try_complete_else_watch(DelayedValue[None](3600), ["tea"]).complete(None)
        shop.paid.add("tea")
        assert first.purgatory.check_and_complete("tea") == 3
        await until_gone()
        assert [operations.messages.statistics().cancelled for operations in (first, second)] == [1, 2]
        await second.offer(shop.payment("milk", 3600), ["milk"])
        other = first.purgatory.try_complete_else_watch(DelayedValue[None](3600), ["milk"])
    # Closing the purgatory has expired it, after the durable operations were gone.
    assert other.expired
    assert [pending(path), pending(path.with_name("other"))] == [0, 1]
