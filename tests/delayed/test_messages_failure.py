"""A failure after which nobody knows what is on the disk closes the store, loudly."""

from __future__ import annotations

import asyncio
import logging
import threading

import pytest

from purgatory import PurgatoryNotOpen
from purgatory.delayed import DelayedMessages, IdTaken, StoreFailed
from purgatory.delayed.storage.store import Store
from tests.delayed.service import BEGIN, PATH, Delivered, Service, open_store
from tests.delayed.storage.simulated_disk import NOTHING


@pytest.mark.parametrize("operation", ["sync", "sync_directory"])
async def test_a_failed_sync_closes_the_store_loudly(
    service: Service, caplog: pytest.LogCaptureFixture, operation: str
) -> None:
    delayed = service.store()

    async def serve() -> None:
        async with delayed:
            await asyncio.sleep(0.1)
            service.disk.fail(operation, thread="log")
            with pytest.raises(StoreFailed):
                await delayed.schedule(b"in doubt", at=BEGIN + 60)
            for _ in range(2):
                with pytest.raises(StoreFailed, match="is closed: the disk failed to sync"):
                    await delayed.schedule(b"refused", at=BEGIN + 60)

    with pytest.raises(StoreFailed, match="failed to sync"):
        await serve()
    assert [record.levelno for record in caplog.records] == [logging.CRITICAL]
    async with service.store():
        await asyncio.sleep(100)
    assert service.payloads in ([], [b"in doubt"])


async def test_after_a_failed_sync_what_was_acknowledged_is_delivered_by_the_next_store(
    service: Service,
) -> None:
    delayed = service.store()
    receipts = []

    async def serve() -> None:
        async with delayed:
            for number in range(5):
                receipts.append(await delayed.schedule(b"%d" % number, at=BEGIN + 10 + number))
            assert await delayed.cancel(receipts[2])
            service.disk.fail("sync", thread="log")
            with pytest.raises(StoreFailed):
                await delayed.cancel(receipts[3])
            await asyncio.sleep(30)
            assert service.payloads == []

    with pytest.raises(StoreFailed):
        await serve()
    service.disk = service.disk.after_power_cut(NOTHING)
    async with service.store():
        await asyncio.sleep(30)
    assert service.payloads == [b"0", b"1", b"3", b"4"]


async def test_a_sync_that_fails_in_the_background_closes_the_store(service: Service) -> None:
    delayed = service.store()

    async def serve() -> None:
        async with delayed:
            await delayed.schedule(b"payload", at=BEGIN + 60)
            service.disk.fail("sync", thread="mover")
            await asyncio.sleep(11)
            with pytest.raises(StoreFailed):
                await delayed.schedule(b"refused", at=BEGIN + 60)

    with pytest.raises(StoreFailed):
        await serve()
    service.disk = service.disk.after_power_cut(NOTHING)
    async with service.store():
        await asyncio.sleep(60)
    assert service.payloads == [b"payload"]


@pytest.mark.parametrize("at", [BEGIN + 1, BEGIN + 25])
async def test_a_failed_sync_of_a_removal_closes_the_store(service: Service, at: float) -> None:
    """Otherwise what was delivered or cancelled could come back after a crash."""
    delayed = service.store()

    def fail(operation: str) -> None:
        if operation == "remove":
            # Of the same thread.
            service.disk.fail("sync_directory")

    async def serve() -> None:
        async with delayed:
            await delayed.schedule(b"payload", at=at)
            await asyncio.sleep(at - BEGIN - 0.5)
            service.disk.watch = fail
            await asyncio.sleep(20)
            with pytest.raises(StoreFailed):
                await delayed.schedule(b"refused", at=BEGIN + 60)

    with pytest.raises(StoreFailed):
        await serve()


async def test_an_unexpected_error_of_the_store_closes_it(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    delayed = service.store()

    async def serve() -> None:
        async with delayed:
            monkeypatch.setattr(Store, "read", lambda store, places: 1 / 0)
            await delayed.schedule(b"payload", at=BEGIN + 5)
            await asyncio.sleep(6)
            with pytest.raises(StoreFailed, match="is closed: division by zero"):
                await delayed.schedule(b"refused", at=BEGIN + 5)

    with pytest.raises(ZeroDivisionError):
        await serve()
    monkeypatch.undo()
    async with service.store():
        await asyncio.sleep(6)
    assert service.payloads == [b"payload"]


async def test_a_failure_of_the_store_ends_a_task_group_that_waits_for_it(service: Service) -> None:
    delayed = service.store()

    async def serve() -> None:
        async with asyncio.TaskGroup() as group, delayed:
            group.create_task(delayed.failed())
            await asyncio.sleep(1)
            assert delayed.statistics().failed == 0
            await delayed.schedule(b"payload", at=BEGIN + 2)
            service.disk.fail("sync", thread="log")
            # The note that it was delivered cannot be written, and nobody waits for that.
            await asyncio.sleep(1_000)

    with pytest.RaisesGroup(pytest.RaisesExc(StoreFailed, match="is closed: the disk failed to sync")):
        await serve()
    assert delayed.statistics().failed == 1
    assert asyncio.get_running_loop().time() < 3
    with pytest.raises(StoreFailed):
        await delayed.failed()


async def test_waiting_for_a_failure_ends_when_the_store_is_closed(service: Service) -> None:
    delayed = service.store()
    with pytest.raises(PurgatoryNotOpen):
        await delayed.failed()
    async with asyncio.TaskGroup() as group, delayed:
        waiting = group.create_task(delayed.failed())
        await asyncio.sleep(1)
        assert not waiting.done()
    await delayed.failed()


async def test_what_was_delivered_as_the_store_failed_is_not_delivered_again(service: Service) -> None:
    delayed = service.store()

    async def handle(attempt: Delivered) -> None:
        open_store(delayed).fail(ValueError("unexpected"))

    async def serve() -> None:
        async with delayed:
            await delayed.schedule(b"payload", at=BEGIN + 25)
            await asyncio.sleep(26)

    service.handle = handle
    with pytest.raises(ValueError, match="unexpected"):
        await serve()
    async with service.store():
        await asyncio.sleep(1)
    assert service.payloads == [b"payload"]
    assert service.files("slots") == []


async def test_a_failed_sync_of_a_note_closes_the_store(service: Service) -> None:
    async def handle(attempt: Delivered) -> None:
        service.disk.fail("sync", thread="log")

    async def serve() -> None:
        async with service.store() as delayed:
            await delayed.schedule(b"payload", at=BEGIN + 1)
            await asyncio.sleep(2)
            with pytest.raises(StoreFailed):
                await delayed.schedule(b"later", at=BEGIN + 60)

    service.handle = handle
    with pytest.raises(StoreFailed, match="failed to sync a file"):
        await serve()
    assert service.payloads == [b"payload"]


async def test_a_call_that_was_cancelled_when_its_sync_fails_ends_as_cancelled(service: Service) -> None:
    async def serve() -> None:
        async with service.store() as delayed:
            service.disk.fail("sync", thread="log")
            scheduling = asyncio.create_task(delayed.schedule(b"payload", at=BEGIN + 60))
            await asyncio.sleep(0)
            scheduling.cancel()
            with pytest.raises(StoreFailed):
                await delayed.failed()
            assert scheduling.cancelled()

    with pytest.raises(StoreFailed, match="failed to sync a file"):
        await serve()


async def test_the_exception_of_the_block_goes_before_that_of_the_store(service: Service) -> None:

    async def serve() -> None:
        async with service.store() as delayed:
            service.disk.fail("sync", thread="log")
            with pytest.raises(StoreFailed):
                await delayed.schedule(b"payload", at=BEGIN + 5)
            raise IdTaken

    with pytest.raises(IdTaken):
        await serve()


async def test_deliveries_end_when_the_store_fails(service: Service) -> None:
    ended: list[BaseException] = []

    async def handle(attempt: Delivered) -> None:
        try:
            await asyncio.sleep(1_000)
        except asyncio.CancelledError as error:
            ended.append(error)
            raise

    service.handle = handle

    async def serve() -> None:
        async with service.store() as delayed:
            await delayed.schedule(b"payload", at=BEGIN)
            await asyncio.sleep(1)
            service.disk.fail("sync", thread="log")
            with pytest.raises(StoreFailed):
                await delayed.schedule(b"another", at=BEGIN + 5)
            await asyncio.sleep(1)
            assert len(ended) == 1

    with pytest.raises(StoreFailed):
        await serve()


class CancelledClock:
    """The service's wall clock, until it reads something cancelled."""

    def __init__(self, service: Service) -> None:
        self._wall = service.wall
        self.cancelled = False

    def __call__(self) -> float:
        if self.cancelled:
            raise asyncio.CancelledError
        return self._wall()


async def test_a_clock_that_reads_something_cancelled_closes_the_store(
    service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    clock = CancelledClock(service)

    async def serve() -> None:
        async with DelayedMessages(PATH, service.deliver, clock=clock, disk=service.disk) as delayed:
            await delayed.schedule(b"payload", at=BEGIN + 5)
            clock.cancelled = True
            await asyncio.sleep(20)
            with pytest.raises(StoreFailed, match="the disk or the clock raised CancelledError"):
                await delayed.schedule(b"refused", at=BEGIN + 60)

    with pytest.raises(RuntimeError, match="the disk or the clock raised CancelledError"):
        await serve()
    assert "is closed: the disk or the clock raised CancelledError" in caplog.text


@pytest.mark.parametrize(
    ("thread", "operation"), [("log", "append"), ("reader", "read"), ("mover", "remove")]
)
async def test_a_disk_that_reads_something_cancelled_closes_the_store(
    service: Service, caplog: pytest.LogCaptureFixture, thread: str, operation: str
) -> None:
    def read_cancelled(called: str) -> None:
        if called == operation and thread in threading.current_thread().name:
            raise asyncio.CancelledError

    async def serve() -> None:
        async with service.store() as delayed:
            await delayed.schedule(b"payload", at=BEGIN + 5)
            service.disk.watch = read_cancelled
            if thread == "log":
                with pytest.raises(RuntimeError, match="the disk raised CancelledError"):
                    await delayed.schedule(b"refused", at=BEGIN + 60)
            await asyncio.sleep(50)
            with pytest.raises(StoreFailed):
                await delayed.schedule(b"refused", at=BEGIN + 60)

    with pytest.raises(RuntimeError, match="raised CancelledError"):
        await serve()
    assert "raised CancelledError: something that it reads was cancelled" in caplog.text


async def test_a_store_whose_task_somebody_cancels_says_so(
    service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    async def serve() -> None:
        async with service.store() as delayed:
            open_store(delayed)._running.cancel()
            await asyncio.sleep(1)
            with pytest.raises(StoreFailed):
                await delayed.schedule(b"refused", at=BEGIN + 60)

    with pytest.raises(RuntimeError, match="somebody has cancelled the task of the store"):
        await serve()
    assert "is closed: somebody has cancelled the task of the store" in caplog.text


async def test_two_failures_close_the_store_once(service: Service, caplog: pytest.LogCaptureFixture) -> None:
    async def serve() -> None:
        async with service.store() as delayed:
            await asyncio.sleep(0.1)
            service.disk.fail("sync", thread="log", times=9)
            await asyncio.gather(
                *(delayed.schedule(b"payload", at=BEGIN + 60) for _ in range(9)), return_exceptions=True
            )
            open_store(delayed).fail(ValueError("another"))

    with pytest.raises(StoreFailed, match="failed to sync a file"):
        await serve()
    assert len(caplog.records) == 1


async def test_a_sync_that_fails_while_the_store_is_closed_is_raised_and_nothing_is_lost(
    service: Service,
) -> None:
    async def serve() -> None:
        async with service.store() as delayed:
            await delayed.schedule(b"payload", at=BEGIN + 60)
            service.disk.fail("sync", thread="mover")

    with pytest.raises(StoreFailed, match="failed to sync a file"):
        await serve()
    service.disk = service.disk.after_power_cut(NOTHING)
    async with service.store():
        await asyncio.sleep(61)
    assert service.payloads == [b"payload"]
