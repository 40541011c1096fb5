"""What happens to operations whose messages find no room on the disk."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from purgatory import OperationState, Purgatory
from purgatory.delayed import DurableOperations
from tests.delayed.durable.full_disk import FullDisk
from tests.delayed.durable.shop import PaymentDue, Shop, opened, pending, until_gone


async def test_an_operation_that_cannot_be_written_is_withdrawn(path: Path, shop: Shop) -> None:
    disk = FullDisk()
    async with opened(path, shop, disk) as operations:
        disk.full = True
        operation = shop.payment("tea", 3600)
        with pytest.raises(OSError, match="No space"):
            await operations.offer(operation, ["tea"])
        assert operation.state is OperationState.CANCELLED
        assert operations.purgatory.operations() == []
        disk.full = False
        await operations.offer(shop.payment("milk", 3600), ["milk"])
    assert pending(path) == 1


async def test_an_operation_that_completes_while_it_cannot_be_written_is_complete(
    path: Path, shop: Shop
) -> None:
    disk = FullDisk()
    async with opened(path, shop, disk) as operations:
        disk.full = True
        offering = asyncio.ensure_future(operations.offer(shop.payment("tea", 3600), ["tea"]))
        await asyncio.sleep(0)
        assert len(operations.purgatory.operations()) == 1
        shop.paid.add("tea")
        operations.purgatory.check_and_complete("tea")
        assert (await offering).result() == "paid"
        disk.full = False


async def test_a_message_that_cannot_be_cancelled_is_logged_and_does_nothing_at_its_time(
    path: Path, shop: Shop, caplog: pytest.LogCaptureFixture
) -> None:
    disk = FullDisk()
    async with opened(path, shop, disk) as operations:
        operation = await operations.offer(shop.payment("tea", 3600), ["tea"])
        disk.full = True
        operation.force_complete()
        await asyncio.sleep(1)
        assert "comes back after a restart before 2030-03-17 18:46:41+00:00: [Errno 28]" in caplog.text
        disk.full = False
        await asyncio.sleep(3700)
        assert len(operations) == 0
    assert shop.done == []
    assert pending(path) == 0


async def test_a_rescheduled_operation_that_cannot_be_written_is_tried_again(path: Path, shop: Shop) -> None:
    disk = FullDisk()
    async with opened(path, shop, disk) as operations:
        operation = await operations.offer(shop.payment("tea", 60), ["tea"])
        operation.reschedule(3600)
        disk.full = True
        await asyncio.sleep(62)
        disk.full = False
        await asyncio.sleep(10)
        assert len(operations.purgatory.operations()) == len(operations) == pending(path) == 1
    assert shop.done == []


async def test_a_message_that_is_left_over_is_gone_though_the_purgatory_is_closed(
    path: Path, shop: Shop
) -> None:
    disk = FullDisk()
    async with opened(path, shop, disk) as operations:
        operation = await operations.offer(shop.payment("tea", 60), ["tea"])
        disk.full = True
        operation.force_complete()
        await until_gone()
        disk.full = False
        await operations.purgatory.aclose()
        await asyncio.sleep(100)
    assert pending(path) == 0


async def test_an_operation_that_comes_back_late_and_cannot_be_written_is_not_made_twice(
    path: Path, shop: Shop
) -> None:
    async with opened(path, shop) as operations:
        await operations.offer(shop.payment("tea", 60), ["tea"])
    disk, made = FullDisk(), 0

    def restore(payload: bytes, timeout: float) -> PaymentDue:
        nonlocal made
        made += 1
        if made == 1:
            raise ValueError("not yet")
        disk.full = True
        return shop.payment(payload.decode(), 600)

    async with (
        Purgatory() as purgatory,
        DurableOperations(purgatory, path, {"payment": restore}, clock=shop.clock, disk=disk) as operations,
    ):
        await asyncio.sleep(62)
        disk.full = False
        await asyncio.sleep(62)
        assert len(purgatory.operations()) == len(operations) == pending(path) == 1
    assert made == 2
