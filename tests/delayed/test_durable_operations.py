"""Operations whose deadlines survive a restart."""

from __future__ import annotations

import asyncio
import errno
import gc
import os
import shutil
import subprocess
import sys
import weakref
from collections.abc import AsyncIterator, Callable, Hashable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from purgatory import (
    DelayedValue,
    OperationState,
    Purgatory,
    PurgatoryClosed,
    PurgatoryFull,
    PurgatoryNotOpen,
)
from purgatory.delayed import DelayedMessages, DurableOperation, DurableOperations, Receipt
from purgatory.delayed.disk import Disk, File
from purgatory.delayed.durable_operation import Record
from purgatory.delayed.inspection import inspect
from purgatory.errors import OperationWithdrawn
from purgatory.testing import VirtualTimeLoop

START = 1_900_000_000.0


@dataclass
class Shop:
    """What the operations look at, and what they have done: (what, order, wall clock)."""

    clock: Callable[[], float]
    paid: set[str] = field(default_factory=set)
    done: list[tuple[str, str, float]] = field(default_factory=list)

    def payment(self, order: str, timeout: float) -> PaymentDue:
        return PaymentDue(self, order, timeout)

    def restore(self, payload: bytes, timeout: float) -> PaymentDue:
        self.done.append(("restored", payload.decode(), self.clock()))
        return PaymentDue(self, payload.decode(), timeout)

    def events(self, what: str) -> list[tuple[str, float]]:
        return [(order, round(at - START, 3)) for event, order, at in self.done if event == what]


class PaymentDue(DurableOperation[str]):
    kind = "payment"

    def __init__(self, shop: Shop, order: str, timeout: float) -> None:
        super().__init__(timeout)
        self.shop = shop
        self.order = order

    def payload(self) -> bytes:
        return self.order.encode()

    def try_complete(self) -> bool:
        return self.order in self.shop.paid and self.force_complete()

    def on_complete(self) -> str:
        if self.order == "bad":
            raise ValueError("a bad order")
        return "expired" if self.expired else "paid"

    def on_expiration(self) -> None:
        self.shop.done.append(("expired", self.order, self.shop.clock()))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "payments"


@pytest.fixture
def shop(virtual_time: VirtualTimeLoop) -> Shop:
    return Shop(lambda: START + virtual_time.time())


@asynccontextmanager
async def opened(
    path: Path, shop: Shop, disk: Disk | None = None, **options: Any
) -> AsyncIterator[DurableOperations]:
    """Operations in a purgatory of their own, as after a start of the process."""
    factories = {"payment": shop.restore}
    async with (
        Purgatory("payments", **options) as purgatory,
        DurableOperations(purgatory, path, factories, clock=shop.clock, disk=disk) as operations,
    ):
        yield operations


def pending(path: Path) -> int:
    """How many messages are on the disk."""
    return inspect(path).pending.messages


async def until_gone() -> None:
    """Wait until the messages of ended operations are gone. Time stands still while the disk works."""
    await asyncio.sleep(0.1)


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


async def test_an_operation_whose_condition_holds_at_once_is_not_written(path: Path, shop: Shop) -> None:
    shop.paid.add("tea")
    async with opened(path, shop) as operations:
        operation = await operations.offer(shop.payment("tea", 60), ["tea"])
        assert operation.result() == "paid"
        assert (await operations.offer(shop.payment("milk", 0), ["milk"])).expired
        assert operations.messages.statistics().scheduled == 0


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
    class First(PaymentDue):
        def on_expiration(self) -> None:
            tea.force_complete()

    async with opened(path, shop) as operations:
        operations.purgatory.try_complete_else_watch(First(shop, "first", 60), ["first"])
        tea = await operations.offer(shop.payment("tea", 60), ["tea"])
        milk = await operations.offer(shop.payment("milk", 60), ["milk"])
        await operations.purgatory.aclose()
        assert (tea.state, milk.state) == (OperationState.COMPLETED, OperationState.EXPIRED)
    assert pending(path) == 1


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


class FullDisk(Disk):
    """A disk on which nothing can be written to the log while it is full."""

    full = False

    def open(self, path: Path) -> File:
        if path.parent.name != "wal":
            return super().open(path)
        return LogFile(os.open(path, os.O_RDWR | os.O_CREAT), self)


class LogFile(File):
    def __init__(self, descriptor: int, disk: FullDisk) -> None:
        super().__init__(descriptor)
        self.disk = disk

    def append(self, data: bytes) -> None:
        if self.disk.full:
            raise OSError(errno.ENOSPC, "No space left on device")
        super().append(data)


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


async def test_a_message_of_another_use_of_the_directory_stays_there(
    path: Path, shop: Shop, caplog: pytest.LogCaptureFixture
) -> None:
    async def deliver(id: str, payload: bytes, due: float) -> None: ...

    async with DelayedMessages(path, deliver, clock=shop.clock) as messages:
        await messages.schedule(b"?", at=START + 3600)
    async with opened(path, shop) as operations:
        await operations.offer(shop.payment("tea", 60), ["tea"])
    assert "an operation cannot be brought back, and stays there: " in caplog.text
    assert pending(path) == 2


async def test_an_unknown_kind_stays_on_the_disk_and_goes_to_the_dead_letters_at_its_deadline(
    path: Path, shop: Shop, caplog: pytest.LogCaptureFixture
) -> None:
    async with opened(path, shop) as operations:
        await operations.offer(shop.payment("tea", 3600), ["tea"])
    for _ in range(2):
        async with Purgatory() as purgatory, DurableOperations(purgatory, path, {}, clock=shop.clock):
            pass
    assert (
        'an operation cannot be brought back, and stays there: ValueError("there is no factory' in caplog.text
    )
    assert pending(path) == 1
    async with (
        Purgatory() as purgatory,
        DurableOperations(purgatory, path, {}, clock=shop.clock) as operations,
    ):
        await asyncio.sleep(5000)
        (letter,) = [letter async for letter in operations.messages.dead_letters()]
        assert letter.payload.endswith(b"tea")
        assert "no factory for the kind 'payment'" in letter.reason
    assert pending(path) == 0


async def test_an_operation_that_could_not_be_brought_back_is_tried_again_at_its_deadline(
    path: Path, shop: Shop, caplog: pytest.LogCaptureFixture
) -> None:
    async with opened(path, shop) as operations:
        await operations.offer(shop.payment("tea", 3600), ["tea"])
        await operations.offer(shop.payment("milk", 7200), ["milk"])
    async with opened(path, shop, max_pending=1) as operations:
        assert len(operations.purgatory.operations()) == 1
        await asyncio.sleep(10_000)
    assert "cannot be brought back" in caplog.text
    assert sorted(shop.events("expired")) == [("milk", 7200), ("tea", 3601)] or sorted(
        shop.events("expired")
    ) == [("milk", 7201), ("tea", 3600)]
    assert pending(path) == 0


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


async def test_several_share_a_purgatory_with_other_operations(path: Path, shop: Shop) -> None:
    async with (
        opened(path, shop) as first,
        DurableOperations(
            first.purgatory, path.with_name("other"), {"payment": shop.restore}, clock=shop.clock
        ) as second,
    ):
        for operations in (first, second):
            await operations.offer(shop.payment("tea", 3600), ["tea"])
        first.purgatory.try_complete_else_watch(shop.payment("tea", 3600), ["tea"])
        first.purgatory.try_complete_else_watch(DelayedValue[None](3600), ["tea"]).complete(None)
        shop.paid.add("tea")
        assert first.purgatory.check_and_complete("tea") == 3
        await until_gone()
        assert [operations.messages.statistics().cancelled for operations in (first, second)] == [1, 1]
        await second.offer(shop.payment("milk", 3600), ["milk"])
        other = first.purgatory.try_complete_else_watch(DelayedValue[None](3600), ["milk"])
    # Closing the purgatory has expired it, after the durable operations were gone.
    assert other.expired
    assert [pending(path), pending(path.with_name("other"))] == [0, 1]


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


@pytest.mark.parametrize("timeout", [float("inf"), None])
async def test_a_timeout_that_never_ends_is_refused(shop: Shop, timeout: Any) -> None:
    with pytest.raises(ValueError, match="needs a finite timeout, not"):
        shop.payment("tea", timeout)


class Key:
    pass


@pytest.mark.parametrize(
    ("keys", "error"),
    [([Key()], TypeError), ([b"tea"], TypeError), ([float("nan")], TypeError), ("tea", TypeError)],
)
async def test_keys_that_json_does_not_hold_are_refused(
    path: Path, shop: Shop, keys: Any, error: type[Exception]
) -> None:
    async with opened(path, shop) as operations:
        with pytest.raises(error, match="keys"):
            await operations.offer(shop.payment("tea", 60), keys)
        assert operations.purgatory.operations() == []


async def test_what_the_purgatory_refuses_is_not_written(path: Path, shop: Shop) -> None:
    async with opened(path, shop, max_pending=1) as operations:
        operation = await operations.offer(shop.payment("tea", 60), ["tea"])
        refused = shop.payment("milk", 60)
        with pytest.raises(PurgatoryFull):
            await operations.offer(refused, ["milk"])
        with pytest.raises(ValueError, match="key"):
            await operations.offer(refused, [])
        with pytest.raises(RuntimeError, match="was offered before: make a new one for each wait"):
            await operations.offer(operation, ["milk"])
        assert operation.keys == ("tea",)
        assert operations.messages.statistics().scheduled == 1
        await operation
        await operations.offer(refused, ["milk"])
        await until_gone()
        assert len(operations) == 1


async def test_a_kind_without_a_factory_is_refused(path: Path, shop: Shop) -> None:
    class Nameless(DurableOperation[None]):
        def try_complete(self) -> bool:
            return False

    class Unknown(PaymentDue):
        kind = "unknown"

    async with opened(path, shop) as operations:
        with pytest.raises(ValueError, match="no factory for the kind 'unknown'"):
            await operations.offer(Unknown(shop, "tea", 60), ["tea"])
        with pytest.raises(ValueError, match="no factory for the kind None"):
            await operations.offer(Nameless(60), ["tea"])
        Nameless.kind = "payment"
        with pytest.raises(NotImplementedError, match=r"Nameless must override payload\(\)"):
            await operations.offer(Nameless(60), ["tea"])


async def test_offering_needs_open_operations(path: Path, shop: Shop) -> None:
    async with Purgatory() as purgatory:
        operations = DurableOperations(purgatory, path, {"payment": shop.restore}, clock=shop.clock)
        with pytest.raises(PurgatoryNotOpen, match="use `async with`"):
            await operations.offer(shop.payment("tea", 60), ["tea"])
        async with operations:
            assert repr(operations) == f"<DurableOperations {str(path)!r} of 0>"
        with pytest.raises(PurgatoryClosed):
            await operations.offer(shop.payment("tea", 60), ["tea"])


async def test_entering_needs_an_open_purgatory(path: Path, shop: Shop) -> None:
    operations = DurableOperations(Purgatory(), path, {}, clock=shop.clock)
    with pytest.raises(PurgatoryNotOpen, match="enter it before"):
        await operations.__aenter__()
    assert list(path.parent.iterdir()) == []


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
        subprocess.run, [sys.executable, "-c", OFFERS_AND_CRASHES, str(path)], check=False
    )
    assert crashed.returncode == 9
    async with opened(path, shop) as operations:
        (operation,) = operations.purgatory.operations("tea")
        assert await operation == "expired"
    assert shop.events("expired") == [("tea", 3600)]


def test_a_record_comes_back_as_it_was() -> None:
    keys: tuple[Hashable, ...] = ("a", 1, 2.5, True, None, ("b", ("c", 3)), "\udcff")
    for replaces in (None, "7"):
        record = Record("payment", keys, START, b"\0payload", replaces)
        assert Record.parse(record.encoded()) == record
