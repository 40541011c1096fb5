"""The memory and the log stay bounded, however many messages there are."""

from __future__ import annotations

import asyncio

import pytest

from tests.delayed.service import BEGIN, Delivered, Service, open_store


async def test_a_second_with_many_more_messages_than_memory_takes_is_delivered_whole(
    service: Service,
) -> None:
    async def schedule(number: int) -> None:
        await delayed.schedule(b"%d" % number, at=BEGIN + 30 + number % 7 / 1000)

    async with service.store() as delayed:
        await asyncio.gather(*map(schedule, range(10_500)))
        await asyncio.sleep(40)
        assert sorted(map(int, service.payloads)) == list(range(10_500))
        assert max(delivered.late for delivered in service.delivered) < 0.1
        assert delayed.statistics().delivered == 10_500


async def test_large_messages_do_not_fill_the_memory(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("purgatory.delayed.waiting_room._BYTES", 4_000)
    monkeypatch.setattr("purgatory.delayed.storage.store._READ", 2_000)
    in_memory: list[int] = []

    async def handle(attempt: Delivered) -> None:
        in_memory.append(open_store(delayed).loader.room.loaded)
        await asyncio.sleep(0.001)

    service.handle = handle
    async with service.store(workers=1) as delayed:
        for number in range(20):
            await delayed.schedule(bytes(1_000) + b"%d" % number, at=BEGIN + 1.5)
        await asyncio.sleep(10)
    assert [payload[1_000:] for payload in service.payloads] == [b"%d" % number for number in range(20)]
    # One read may bring some more than there is room for.
    assert max(in_memory) <= 6


async def test_a_long_log_is_spread_before_the_next_turn(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("purgatory.delayed.horizon._LONG", 1_000)
    async with service.store() as delayed:
        await asyncio.sleep(1)
        for number in range(30):
            await delayed.schedule(bytes(100), at=BEGIN + 60 + number)
        await asyncio.sleep(1)
        assert len(service.files("slots")) >= 20
        await asyncio.sleep(90)
    assert len(service.delivered) == 30


async def test_the_log_is_spread_while_too_much_is_due(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("purgatory.delayed.horizon._POSITIONS", 20)
    monkeypatch.setattr("purgatory.delayed.waiting_room._MESSAGES", 15)
    async with service.store() as delayed:
        for number in range(50):
            await delayed.schedule(b"%d" % number, at=BEGIN + 100 + number)
    service.wall.offset += 1_000
    hanging = asyncio.Event()

    async def handle(attempt: Delivered) -> None:
        await hanging.wait()

    service.handle = handle
    async with service.store(workers=1) as delayed:
        await asyncio.sleep(1)
        await delayed.schedule(b"later", at=BEGIN + 5_000)
        await asyncio.sleep(10)
        assert str(int(BEGIN + 5_000) * 1000) in service.files("slots")
        assert service.files("wal") == []
        hanging.set()
        await asyncio.sleep(1)
        assert len(service.delivered) == 50


async def test_only_so_many_positions_are_in_memory(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("purgatory.delayed.horizon._POSITIONS", 20)
    monkeypatch.setattr("purgatory.delayed.waiting_room._MESSAGES", 15)
    async with service.store() as delayed:
        for number in range(200):
            await delayed.schedule(b"%d" % number, at=BEGIN + 100 + number // 10)
    most = 0

    async def handle(attempt: Delivered) -> None:
        nonlocal most
        most = max(most, len(open_store(delayed).loader.store.agenda))
        await asyncio.sleep(0.01)

    service.handle = handle
    service.wall.offset += 1_000
    async with service.store(workers=5) as delayed:
        await asyncio.sleep(5)
    assert sorted(map(int, service.payloads)) == list(range(200))
    # A slot of ten messages more.
    assert 10 < most <= 30
