"""Messages of which no operation can be made stay on the disk."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from purgatory import DelayedValue, Purgatory
from purgatory.delayed import DelayedMessages, DurableOperations
from tests.delayed.durable.shop import START, PaymentDue, Shop, opened, pending


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


async def test_a_factory_that_reads_something_cancelled_harms_its_operation_alone(
    path: Path, shop: Shop, caplog: pytest.LogCaptureFixture
) -> None:
    async with opened(path, shop) as operations:
        await operations.offer(shop.payment("tea", 3600), ["tea"])
        await operations.offer(shop.payment("milk", 3600), ["milk"])

    def restore(payload: bytes, timeout: float) -> PaymentDue:
        if payload == b"tea":
            raise asyncio.CancelledError
        return shop.restore(payload, timeout)

    words = "the factory of the kind 'payment' raised CancelledError: something that it reads was cancelled"
    async with (
        Purgatory() as purgatory,
        DurableOperations(purgatory, path, {"payment": restore}, clock=shop.clock) as operations,
    ):
        assert words in caplog.text
        assert [operation.keys for operation in purgatory.operations()] == [("milk",)]
        await asyncio.sleep(10_000)
        (letter,) = [letter async for letter in operations.messages.dead_letters()]
        assert words in letter.reason
    assert shop.events("expired") == [("milk", 3600.0)]


async def later(payload: bytes, timeout: float) -> None: ...


@pytest.mark.parametrize(
    ("factory", "found"),
    [
        (lambda payload, timeout: later(payload, timeout), "<coroutine object later at"),
        (lambda payload, timeout: None, "None, which is no DurableOperation"),
        (lambda payload, timeout: DelayedValue(timeout), "<DelayedValue"),
    ],
)
async def test_a_factory_that_returns_something_else_is_told(
    path: Path, shop: Shop, caplog: pytest.LogCaptureFixture, factory: Any, found: str
) -> None:
    async with opened(path, shop) as operations:
        await operations.offer(shop.payment("tea", 3600), ["tea"])
    async with (
        Purgatory() as purgatory,
        DurableOperations(purgatory, path, {"payment": factory}, clock=shop.clock) as operations,
    ):
        words = f"the factory of the kind 'payment' returned {found}"
        assert words in caplog.text
        assert purgatory.operations() == []
        await asyncio.sleep(10_000)
        (letter,) = [letter async for letter in operations.messages.dead_letters()]
        assert words in letter.reason
