"""A message can be cancelled until it is being delivered, wherever it is."""

from __future__ import annotations

import asyncio

import pytest

from purgatory import PurgatoryClosed
from purgatory.delayed import Receipt
from purgatory.delayed.horizon import Horizon
from purgatory.delayed.loader import Loader
from tests.delayed.service import BEGIN, Delivered, Service, SlowDisk, open_store

# Seconds until the message is due: parked, in the agenda, in the log, and in a slot file after a turn.
DELAYS = [0.5, 15.0, 45.0, 400.0]


@pytest.mark.parametrize("id", [None, "the id"])
@pytest.mark.parametrize("wait", [0.0, 0.2, 25.0])
@pytest.mark.parametrize("delay", DELAYS)
async def test_a_cancelled_message_is_never_delivered_also_after_a_restart(
    service: Service, delay: float, wait: float, id: str | None
) -> None:
    async with service.store() as delayed:
        receipt = await delayed.schedule(b"payload", at=BEGIN + delay + wait, id=id)
        await delayed.schedule(b"another", at=BEGIN + delay + wait)
        await asyncio.sleep(wait)
        assert await delayed.cancel(receipt)
        assert not await delayed.cancel(receipt)
        assert delayed.statistics().cancelled == 1
    async with service.store() as delayed:
        assert not await delayed.cancel(receipt)
        await asyncio.sleep(delay + wait + 1)
    assert service.payloads == [b"another"]
    assert service.files("slots") == []
    assert service.files("wal") == []


@pytest.mark.parametrize("delay", DELAYS)
async def test_a_message_is_cancelled_after_a_restart(service: Service, delay: float) -> None:
    async with service.store() as delayed:
        text = str(await delayed.schedule(b"payload", at=BEGIN + delay))
    async with service.store() as delayed:
        assert await delayed.cancel(Receipt.parse(text))
        assert not await delayed.cancel(Receipt.parse(text))
        await asyncio.sleep(delay + 1)
    assert service.payloads == []


async def test_a_message_is_cancelled_when_its_slot_becomes_due_soon(service: Service) -> None:
    async with service.store() as delayed:
        receipts = [await delayed.schedule(b"payload", at=BEGIN + 20 + number / 100) for number in range(500)]
        answers = []
        for receipt in receipts:
            answers.append(await delayed.cancel(receipt))
            await asyncio.sleep(0.021)
        await asyncio.sleep(40)
    assert all(answers)
    assert service.payloads == []


async def test_a_message_of_the_same_millisecond_stays(service: Service) -> None:
    async with service.store() as delayed:
        receipts = [await delayed.schedule(b"%d" % number, at=BEGIN + 10) for number in range(5)]
        await delayed.cancel(receipts[1])
        await delayed.cancel(receipts[3])
        await asyncio.sleep(11)
    assert service.payloads == [b"0", b"2", b"4"]


async def test_a_message_between_others_of_its_millisecond_is_found(service: Service) -> None:
    async with service.store() as delayed:
        receipts = [await delayed.schedule(b"%d" % number, at=BEGIN + 10) for number in range(10)]
        assert await delayed.cancel(receipts[8])
        assert not await delayed.cancel(Receipt("another", BEGIN + 10, 5))
        await asyncio.sleep(11)
    assert sorted(service.payloads) == [b"%d" % number for number in range(10) if number != 8]


async def test_a_message_that_is_due_soon_is_cancelled_without_a_read(service: Service) -> None:
    async with service.store() as delayed:
        await asyncio.gather(*(delayed.schedule(b"before", at=BEGIN + 25) for _ in range(500)))
        in_file = await delayed.schedule(b"cancelled", at=BEGIN + 25)
        await asyncio.sleep(11)
        in_log = await delayed.schedule(b"cancelled", at=BEGIN + 25)
        operations: list[str] = []
        service.disk.watch = operations.append
        assert await delayed.cancel(in_file)
        assert await delayed.cancel(in_log)
        assert operations == ["append", "sync"] * 2
        await asyncio.sleep(20)
    assert service.payloads == [b"before"] * 500


async def test_a_message_that_is_being_delivered_or_was_delivered_cannot_be_cancelled(
    service: Service,
) -> None:
    answers = []

    async def handle(attempt: Delivered) -> None:
        answers.append(await delayed.cancel(receipt))

    service.handle = handle
    async with service.store() as delayed:
        receipt = await delayed.schedule(b"payload", at=BEGIN + 1)
        await asyncio.sleep(1.1)
        answers.append(await delayed.cancel(receipt))
        await asyncio.sleep(20)
        answers.append(await delayed.cancel(receipt))
    assert answers == [False, False, False]
    assert service.payloads == [b"payload"]


async def test_a_message_that_waits_for_a_worker_cannot_be_cancelled(service: Service) -> None:
    async def handle(attempt: Delivered) -> None:
        await asyncio.sleep(10)

    service.handle = handle
    async with service.store(workers=1) as delayed:
        await delayed.schedule(b"first", at=BEGIN + 1)
        receipt = await delayed.schedule(b"second", at=BEGIN + 1)
        await asyncio.sleep(2)
        assert not await delayed.cancel(receipt)
        await asyncio.sleep(20)
    assert service.payloads == [b"first", b"second"]


async def test_a_message_that_waits_for_another_attempt_is_cancelled(service: Service) -> None:
    async def handle(attempt: Delivered) -> None:
        raise ValueError

    service.handle = handle
    async with service.store(backoff=5) as delayed:
        receipt = await delayed.schedule(b"payload", at=BEGIN + 1)
        await asyncio.sleep(2)
        assert delayed.statistics().retrying == 1
        assert await delayed.cancel(receipt)
        assert delayed.statistics().retrying == 0
        await asyncio.sleep(20)
        assert len(service.attempts) == 1
    async with service.store():
        await asyncio.sleep(20)
    assert len(service.attempts) == 1


async def test_a_dead_letter_cannot_be_cancelled(service: Service) -> None:
    async def handle(attempt: Delivered) -> None:
        raise ValueError

    service.handle = handle
    async with service.store(attempts=1) as delayed:
        receipt = await delayed.schedule(b"payload", at=BEGIN + 1)
        await asyncio.sleep(2)
        assert not await delayed.cancel(receipt)


@pytest.mark.parametrize("delay", DELAYS)
async def test_of_many_who_cancel_at_the_same_time_one_is_told_that_it_was_still_to_come(
    service: Service, delay: float
) -> None:
    async with service.store() as delayed:
        receipt = await delayed.schedule(b"payload", at=BEGIN + delay)
        answers = await asyncio.gather(*(delayed.cancel(receipt) for _ in range(5)))
        await asyncio.sleep(delay + 1)
    assert sorted(answers) == [False] * 4 + [True]
    assert service.payloads == []


@pytest.mark.parametrize("delay", DELAYS)
@pytest.mark.parametrize("retrying", [False, True])
async def test_a_message_stays_if_its_cancellation_cannot_be_written(
    service: Service, delay: float, retrying: bool
) -> None:
    async def handle(attempt: Delivered) -> None:
        if retrying and len(service.attempts) == 1:
            raise ValueError

    service.handle = handle
    async with service.store(backoff=2) as delayed:
        receipt = await delayed.schedule(b"payload", at=BEGIN + delay)
        if retrying:
            await asyncio.sleep(delay + 0.1)
        service.disk.capacity = service.disk.used
        with pytest.raises(OSError, match="No space"):
            await delayed.cancel(receipt)
        service.disk.capacity = None
        assert delayed.statistics().cancelled == 0
        assert delayed.statistics().retrying == retrying
        await asyncio.sleep(delay + 5)
    assert service.payloads == [b"payload"]


@pytest.mark.parametrize("delay", DELAYS)
@pytest.mark.parametrize("turns", range(8))
async def test_a_task_that_cancels_and_is_cancelled_itself_cancels_the_message_or_not(
    service: Service, delay: float, turns: int
) -> None:
    async with service.store() as delayed:
        receipt = await delayed.schedule(b"payload", at=BEGIN + delay)
        cancelling = asyncio.create_task(delayed.cancel(receipt))
        for _ in range(turns):
            await asyncio.sleep(0)
        cancelling.cancel()
        await asyncio.wait([cancelling])
        again = await delayed.cancel(receipt)
        await asyncio.sleep(delay + 1)
    if again or not cancelling.cancelled():
        assert service.payloads == []
    async with service.store():
        await asyncio.sleep(delay + 1)
    assert len(service.payloads) <= 1
    assert service.files("slots") == []


async def test_a_receipt_of_another_store_cancels_nothing(service: Service) -> None:
    async with service.store() as delayed:
        await delayed.schedule(b"payload", at=BEGIN + 5)
        assert not await delayed.cancel(Receipt("id", BEGIN + 5, 1))
        await asyncio.sleep(6)
    assert service.payloads == [b"payload"]


async def test_a_message_that_waits_for_room_in_memory_is_cancelled(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("purgatory.delayed.waiting_room._BYTES", 4_000)
    monkeypatch.setattr("purgatory.delayed.storage.store._READ", 2_000)

    async def handle(attempt: Delivered) -> None:
        await asyncio.sleep(1)

    service.handle = handle
    async with service.store(workers=1) as delayed:
        receipts = [
            await delayed.schedule(bytes(1_000) + b"%d" % number, at=BEGIN + 5) for number in range(20)
        ]
        await asyncio.sleep(6)
        assert await delayed.cancel(receipts[15])
        assert not await delayed.cancel(receipts[15])
        await asyncio.sleep(30)
    assert [int(payload[1_000:]) for payload in service.payloads] == [n for n in range(20) if n != 15]


async def test_a_message_that_waits_for_room_for_another_attempt_is_cancelled(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("purgatory.delayed.waiting_room._MESSAGES", 1)

    async def handle(attempt: Delivered) -> None:
        if attempt.payload == b"fails":
            raise ValueError
        await asyncio.sleep(10)

    service.handle = handle
    async with service.store() as delayed:
        receipt = await delayed.schedule(b"fails", at=BEGIN)
        await asyncio.sleep(0.1)
        await delayed.schedule(b"another", at=BEGIN + 0.5)
        await asyncio.sleep(2)
        assert len(service.attempts) == 2
        assert delayed.statistics().retrying == 1
        assert await delayed.cancel(receipt)
        assert delayed.statistics().retrying == 0
        await asyncio.sleep(20)
    assert len(service.attempts) == 2
    assert service.files("wal") == []


async def test_a_cancellation_that_is_being_written_goes_on_when_its_task_is_cancelled(
    service: Service,
) -> None:
    async with service.store() as delayed:
        await asyncio.sleep(0.1)
        receipt = await delayed.schedule(b"payload", at=BEGIN + 0.9)
        slow = SlowDisk(service, "append", "log")
        cancelling = asyncio.create_task(delayed.cancel(receipt))
        await slow.begun.wait()
        cancelling.cancel()
        await asyncio.wait([cancelling])
        assert cancelling.cancelled()
        slow.free.set()
        assert not await delayed.cancel(receipt)
        await asyncio.sleep(2)
    assert service.payloads == []
    assert service.files("wal") == []


async def test_a_cancellation_that_waits_for_its_slot_ends_when_the_store_is_closed(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with service.store() as delayed:
        receipt = await delayed.schedule(b"payload", at=BEGIN + 15)
    close = Loader.close

    async def close_and_let_go_on(loader: Loader) -> None:
        asyncio.get_running_loop().call_soon(slow.free.set)
        await close(loader)

    monkeypatch.setattr(Loader, "close", close_and_let_go_on)
    slow = SlowDisk(service, "read", "searcher")
    async with service.store() as delayed:
        cancelling = asyncio.create_task(delayed.cancel(receipt))
        await slow.begun.wait()
    with pytest.raises(PurgatoryClosed, match="has been closed"):
        await cancelling


async def test_a_cancellation_that_cannot_be_written_when_the_store_has_failed_leaves_the_message(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow: SlowDisk
    cancelling: asyncio.Task[bool]

    async def handle(attempt: Delivered) -> None:
        if len(service.attempts) == 1:
            raise ValueError

    close = Loader.close

    async def close_and_fill_the_disk(loader: Loader) -> None:
        await close(loader)
        service.disk.capacity = 0
        slow.free.set()

    async def serve() -> None:
        nonlocal slow, cancelling
        async with service.store(backoff=60) as delayed:
            receipt = await delayed.schedule(b"payload", at=BEGIN)
            await asyncio.sleep(1)
            slow = SlowDisk(service, "append", "log")
            cancelling = asyncio.create_task(delayed.cancel(receipt))
            await slow.begun.wait()
            open_store(delayed).fail(KeyError("unexpected"))

    service.handle = handle
    monkeypatch.setattr(Loader, "close", close_and_fill_the_disk)
    with pytest.raises(KeyError, match="unexpected"):
        await serve()
    service.disk.capacity = None
    with pytest.raises(OSError, match="No space"):
        await cancelling
    async with service.store():
        await asyncio.sleep(1)
    assert service.payloads == [b"payload"]


@pytest.mark.parametrize("full", [False, True])
async def test_a_cancellation_that_began_before_the_store_was_closed_is_written_or_raises(
    service: Service, monkeypatch: pytest.MonkeyPatch, full: bool
) -> None:
    async with service.store() as delayed:
        receipt = await delayed.schedule(b"payload", at=BEGIN + 15)
    spread = Horizon.spread

    async def let_go_on_and_spread(horizon: Horizon) -> None:
        if full:
            service.disk.capacity = 0
        slow.free.set()
        await spread(horizon)

    async with service.store() as delayed:
        await asyncio.sleep(0.1)
        monkeypatch.setattr(Horizon, "spread", let_go_on_and_spread)
        slow = SlowDisk(service, "append", "log")
        cancelling = asyncio.create_task(delayed.cancel(receipt))
        await slow.begun.wait()
    service.disk.capacity = None
    if full:
        with pytest.raises(OSError, match="No space"):
            await cancelling
    else:
        assert await cancelling
    async with service.store():
        await asyncio.sleep(16)
    assert service.payloads == ([b"payload"] if full else [])
    assert service.files("slots") == []
