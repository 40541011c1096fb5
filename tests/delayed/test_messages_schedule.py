"""What `schedule` takes, refuses and returns, and what ids are for."""

from __future__ import annotations

import asyncio
import math
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from purgatory.delayed import IdTaken, Receipt
from purgatory.delayed.storage.requests import milliseconds
from tests.delayed.service import BEGIN, Delivered, Service


@pytest.mark.parametrize(
    ("arguments", "error", "complaint"),
    [
        ({"payload": "text"}, TypeError, "payload must be bytes, not str"),
        ({"payload": bytearray(b"x")}, TypeError, "payload must be bytes, not bytearray"),
        ({"payload": bytes(1_001)}, ValueError, "a payload of 1001 bytes is too long: max_payload is 1000"),
        ({"at": math.nan}, ValueError, "at must be a number of seconds since the epoch"),
        ({"at": math.inf}, ValueError, "at must be a number of seconds since the epoch"),
        ({"at": -math.inf}, ValueError, "at must be a number of seconds since the epoch"),
        ({"at": 1e15}, ValueError, "at must be a number of seconds since the epoch"),
        ({"at": 10**400}, ValueError, "at must be a number of seconds since the epoch"),
        ({"at": datetime(2030, 1, 1)}, ValueError, "at must be an aware datetime, and .* has no time zone"),
        ({"at": "tomorrow"}, TypeError, "at must be a datetime or seconds since the epoch, not str"),
        ({"at": None}, TypeError, "at must be a datetime or seconds since the epoch, not NoneType"),
        ({"at": True}, TypeError, "at must be a datetime or seconds since the epoch, not bool"),
        ({"at": timedelta(1)}, TypeError, "at must be a datetime or seconds since the epoch, not timedelta"),
        ({"id": b"id"}, TypeError, "id must be a str, not bytes"),
        ({"id": ""}, ValueError, "an id must have 1 to 1024 bytes in UTF-8, not 0"),
        ({"id": "ß" * 513}, ValueError, "an id must have 1 to 1024 bytes in UTF-8, not 1026"),
        ({"id": "\ud800"}, ValueError, "cannot be encoded in UTF-8"),
    ],
)
async def test_bad_input_is_refused_and_harms_nothing(
    service: Service, arguments: dict[str, Any], error: type[Exception], complaint: str
) -> None:
    default: dict[str, Any] = {"payload": b"refused", "at": BEGIN + 1}
    async with service.store(max_payload=1_000) as delayed:
        with pytest.raises(error, match=complaint):
            await delayed.schedule(**(default | arguments))
        await delayed.schedule(bytes(1_000), at=BEGIN + 1, id="ß" * 512)
        await asyncio.sleep(2)
        assert delayed.statistics().scheduled == 1
    assert [(delivered.id, delivered.payload) for delivered in service.delivered] == [
        ("ß" * 512, bytes(1_000))
    ]


async def test_a_time_is_an_aware_datetime_or_seconds(service: Service) -> None:
    east = timezone(timedelta(hours=5, minutes=30))
    async with service.store() as delayed:
        for at in (
            datetime.fromtimestamp(BEGIN + 1.25, UTC),
            datetime.fromtimestamp(BEGIN + 1.25, east),
            BEGIN + 1.25,
        ):
            assert (await delayed.schedule(b"payload", at=at)).due == BEGIN + 1.25
        whole: int = int(BEGIN) + 2
        assert (await delayed.schedule(b"payload", at=whole)).due == BEGIN + 2
        await asyncio.sleep(3)
    assert [delivered.due - BEGIN for delivered in service.delivered] == [1.25, 1.25, 1.25, 2]


@pytest.mark.parametrize("years", [1, 500, 30_000])
async def test_a_message_may_be_due_in_many_years(service: Service, years: int) -> None:
    at = BEGIN + years * 365 * 86_400.0
    async with service.store() as delayed:
        receipt = await delayed.schedule(b"payload", at=at)
        cancelled = await delayed.schedule(b"cancelled", at=at)
        await asyncio.sleep(30)
        assert await delayed.cancel(cancelled)
        assert not await delayed.cancel(cancelled)
    assert receipt.due == at
    assert Receipt.parse(str(receipt)) == receipt
    service.wall.offset = at - 60
    async with service.store():
        await asyncio.sleep(61)
    assert service.payloads == [b"payload"]


@given(st.floats(-1e12, 1e12))
def test_a_due_time_is_rounded_up_to_a_millisecond(at: float) -> None:
    due = milliseconds(at)
    # Not by a rounding error of the multiplication.
    assert at * 1000 - 0.01 - abs(at) * 1e-12 <= due < at * 1000 + 1 + abs(at) * 1e-12


@pytest.mark.parametrize("due", [0, 1, 999, 1_700_000_000_001, 1_700_000_000_999, -1, 1 << 49])
def test_whole_milliseconds_are_kept(due: int) -> None:
    assert milliseconds(due / 1000) == due


# Ids


async def test_a_message_without_an_id_gets_one(service: Service) -> None:
    async with service.store() as delayed:
        receipts = [await delayed.schedule(b"payload", at=BEGIN + 1) for _ in range(3)]
        await asyncio.sleep(2)
    assert len({receipt.id for receipt in receipts}) == 3
    assert sorted(receipt.id for receipt in receipts) == sorted(d.id for d in service.delivered)


@pytest.mark.parametrize("delay", [0.5, 15.0, 400.0])
@pytest.mark.parametrize("restart", [False, True])
async def test_the_same_message_twice_is_one_and_another_with_its_id_is_refused(
    service: Service, delay: float, restart: bool
) -> None:
    async with AsyncExitStack() as stack:
        delayed = await stack.enter_async_context(service.store())
        receipt = await delayed.schedule(b"payload", at=BEGIN + delay, id="id")
        if restart:
            await stack.aclose()
            delayed = await stack.enter_async_context(service.store())
        assert await delayed.schedule(b"payload", at=BEGIN + delay, id="id") == receipt
        assert await delayed.find("id") == receipt
        assert await delayed.find("another") is None
        for payload, at in ((b"another", BEGIN + delay), (b"payload", BEGIN + delay + 1)):
            with pytest.raises(IdTaken, match="the id 'id' belongs to another message"):
                await delayed.schedule(payload, at=at, id="id")
        await asyncio.sleep(delay + 1)
        assert service.payloads == [b"payload"]
        # It is free again.
        await delayed.schedule(b"another", at=service.wall() + 1, id="id")
        await asyncio.sleep(2)
        assert service.payloads == [b"payload", b"another"]
        assert await delayed.find("id") is None


@pytest.mark.parametrize("delay", [0.5, 15.0, 400.0])
async def test_the_id_of_a_cancelled_message_is_free(service: Service, delay: float) -> None:
    async with service.store() as delayed:
        for number in range(3):
            receipt = await delayed.schedule(b"%d" % number, at=BEGIN + delay, id="id")
            if number < 2:
                assert await delayed.cancel(receipt)
        await asyncio.sleep(delay + 1)
    assert service.payloads == [b"2"]


async def test_an_id_is_free_as_soon_as_its_message_was_delivered(service: Service) -> None:
    async def handle(attempt: Delivered) -> None:
        if len(service.attempts) < 5:
            following.append(asyncio.create_task(schedule_next()))

    async def schedule_next() -> None:
        # The next delivery of a message that comes every second.
        await delayed.schedule(b"payload", at=service.wall() + 1, id="every second")

    following: list[asyncio.Task[None]] = []
    service.handle = handle
    async with service.store() as delayed:
        await delayed.schedule(b"payload", at=BEGIN, id="every second")
        await asyncio.sleep(10)
        assert all(task.exception() is None for task in following)
    assert len(service.delivered) == 5


async def test_many_who_schedule_one_message_share_it(service: Service) -> None:
    async with service.store() as delayed:
        receipts = await asyncio.gather(
            *(delayed.schedule(b"payload", at=BEGIN + 5, id="id") for _ in range(100))
        )
        assert len(set(receipts)) == 1
        assert delayed.statistics().scheduled == 1
        await asyncio.sleep(6)
    assert service.payloads == [b"payload"]


async def test_those_who_wait_at_the_same_time_share_a_sync(service: Service) -> None:
    syncs = 0

    def count(operation: str) -> None:
        nonlocal syncs
        syncs += operation == "sync"

    async with service.store() as delayed:
        await asyncio.sleep(1)
        service.disk.watch = count
        await asyncio.gather(*(delayed.schedule(b"payload", at=BEGIN + 100) for _ in range(1_000)))
        # The first one may be written alone.
        assert syncs <= 2


async def test_a_commit_has_a_limit(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("purgatory.delayed.committer._REQUESTS", 10)
    async with service.store() as delayed:
        await asyncio.gather(*(delayed.schedule(b"%d" % n, at=BEGIN + 1) for n in range(95)))
        await asyncio.sleep(2)
    assert sorted(map(int, service.payloads)) == list(range(95))


async def test_more_requests_than_the_disk_takes_hold_up_no_turn(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("purgatory.delayed.committer._REQUESTS", 3)

    async def schedule_all() -> None:
        while True:
            await delayed.schedule(b"load", at=BEGIN + 3_600)

    async with service.store() as delayed:
        first = await delayed.schedule(b"payload", at=BEGIN + 7_200)
        # They have a request waiting at any time, until they are cancelled.
        load = [asyncio.create_task(schedule_all()) for _ in range(10)]
        await asyncio.sleep(0)
        # The messages that are in the log move on first, as in a turn.
        assert first in [message.receipt async for message in delayed.pending()]
        for each in load:
            each.cancel()
        await asyncio.wait(load)
