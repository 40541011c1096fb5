"""An operation that has ended is gone from the disk, and one that has not ended is there."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from purgatory import OperationState
from purgatory.testing import VirtualTimeLoop
from tests.delayed.durable.shop import START, Shop, opened, pending, until_gone
from tests.operations import raising


async def test_an_operation_that_expires_is_gone_from_the_disk(path: Path, shop: Shop) -> None:
    async with opened(path, shop) as operations:
        operation = await operations.offer(shop.payment("tea", 3600), ["tea"])
        assert pending(path) == len(operations) == 1
        assert await operation == "expired"
        await until_gone()
        assert pending(path) == 0
    assert shop.events("expired") == [("tea", 3600)]
    async with opened(path, shop):
        pass
    assert shop.events("restored") == []


@pytest.mark.parametrize("timeout", [5, 3600])
@pytest.mark.parametrize("end", ["complete", "cancel", "fail", "raise"])
async def test_an_operation_that_ends_before_its_deadline_is_gone_from_the_disk(
    path: Path, shop: Shop, timeout: float, end: str
) -> None:
    async with opened(path, shop) as operations:
        operation = await operations.offer(shop.payment("bad" if end == "raise" else "tea", timeout), ["a"])
        waiting = asyncio.ensure_future(operation)
        await asyncio.sleep(1)
        if end == "complete":
            shop.paid.add("tea")
            assert operations.purgatory.check_and_complete("a") == 1
        elif end == "cancel":
            operation.cancel()
        elif end == "fail":
            operation.fail(ValueError("no tea"))
        else:
            operation.force_complete()
        await asyncio.wait([waiting])
        assert (waiting.exception() is None) == (end == "complete")
        await until_gone()
        assert pending(path) == len(operations) == 0
    async with opened(path, shop):
        await asyncio.sleep(2 * timeout)
    assert shop.events("restored") == shop.events("expired") == []


async def test_an_operation_whose_condition_holds_at_once_is_not_written(path: Path, shop: Shop) -> None:
    shop.paid.add("tea")
    async with opened(path, shop) as operations:
        operation = await operations.offer(shop.payment("tea", 60), ["tea"])
        assert operation.result() == "paid"
        assert (await operations.offer(shop.payment("milk", 0), ["milk"])).expired
        assert operations.messages.statistics().scheduled == 0


async def test_cancelling_the_tasks_that_await_it_leaves_an_operation_pending(path: Path, shop: Shop) -> None:
    async with opened(path, shop) as operations:
        operation = await operations.offer(shop.payment("tea", 60), ["tea"])
        tasks = [asyncio.ensure_future(operation) for _ in range(3)]
        await asyncio.sleep(1)
        for task in tasks:
            task.cancel()
            await asyncio.wait([task])
            assert operation.state is OperationState.PENDING
        one = asyncio.ensure_future(operation)
        await asyncio.sleep(1)
        one.cancel()
        await asyncio.wait([one])
        assert len(operations) == 1
        assert await operation == "expired"
        assert await operation == "expired"


async def test_a_task_that_is_cancelled_as_the_operation_ends_gets_its_cancellation(
    path: Path, shop: Shop
) -> None:
    async with opened(path, shop) as operations:
        operation = await operations.offer(shop.payment("tea", 60), ["tea"])
        task = asyncio.ensure_future(operation)
        await asyncio.sleep(1)
        operation.force_complete()
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()


async def test_a_step_of_the_wall_clock_ends_no_operation_while_the_process_runs(
    path: Path, virtual_time: VirtualTimeLoop
) -> None:
    step = 0.0
    shop = Shop(lambda: START + step + virtual_time.time())
    async with opened(path, shop) as operations:
        operation = await operations.offer(shop.payment("tea", 3600), ["tea"])
        step = 7200.0
        await asyncio.sleep(100)
        assert operation.state is OperationState.PENDING
        assert pending(path) == 1
        step = -7200.0
        assert await operation == "expired"
        assert virtual_time.time() == pytest.approx(3600)
        await until_gone()
        assert pending(path) == 0


async def test_an_operation_that_ends_while_it_is_written_is_gone_from_the_disk(
    path: Path, shop: Shop
) -> None:
    async with opened(path, shop) as operations:
        offering = asyncio.ensure_future(operations.offer(shop.payment("tea", 3600), ["tea"]))
        await asyncio.sleep(0)
        assert len(operations.purgatory.operations()) == 1
        shop.paid.add("tea")
        assert operations.purgatory.check_and_complete("tea") == 1
        assert (await offering).result() == "paid"
        await until_gone()
        assert pending(path) == 0


async def test_cancelling_an_offer_withdraws_the_operation(path: Path, shop: Shop) -> None:
    async with opened(path, shop) as operations:
        operation = shop.payment("tea", 3600)
        offering = asyncio.ensure_future(operations.offer(operation, ["tea"]))
        await asyncio.sleep(0)
        assert len(operations.purgatory.operations()) == 1
        offering.cancel()
        await asyncio.wait([offering])
        assert offering.cancelled()
        assert operation.state is OperationState.CANCELLED
        await until_gone()
        assert pending(path) == 0


async def test_an_error_at_one_message_leaves_no_other_on_the_disk(
    path: Path, shop: Shop, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(path, shop) as operations:
        first = await operations.offer(shop.payment("tea", 3600), ["tea"])
        second = await operations.offer(shop.payment("milk", 3600), ["milk"])
        with monkeypatch.context() as patched:
            fail = raising(RuntimeError("a fault of the library"))
            patched.setattr(operations.messages, "cancel", lambda _: fail())
            first.complete("paid")
            await until_gone()
        second.complete("paid")
        await until_gone()
    assert (
        "comes back after a restart before 2030-03-17 18:46:41+00:00: a fault of the library" in caplog.text
    )
    assert pending(path) == 1


async def test_operations_that_end_after_somebody_has_cancelled_all_tasks_are_gone_from_the_disk(
    path: Path, shop: Shop
) -> None:
    async with opened(path, shop) as operations:
        first = await operations.offer(shop.payment("tea", 3600), ["tea"])
        second = await operations.offer(shop.payment("milk", 3600), ["milk"])
        first.complete("paid")
        withdrawing = operations._withdrawals._withdrawing
        assert withdrawing is not None
        withdrawing.cancel()
        await asyncio.sleep(1)
        second.complete("paid")
        await until_gone()
        assert pending(path) == 0
