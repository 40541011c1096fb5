"""Faults that the timing wheel of RocketMQ is known for, one by one.

It keeps messages with a delay in a commit log and in a wheel file. The faults are those of RIP-43 and of the
issues about it.
"""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from purgatory.delayed import DelayedMessages, StoreLocked
from purgatory.delayed.storage.disk import Disk
from purgatory.delayed.storage.store import Store
from tests.delayed.service import BEGIN, Service
from tests.delayed.storage.simulated_disk import EVERYTHING, NOTHING, PowerCut, SimulatedDisk
from tests.delayed.storage.store_run import NOW, PATH, SLOT_MS, StoreRun

YEAR = 365 * 86_400


@pytest.fixture
def run() -> StoreRun:
    run = StoreRun(SimulatedDisk())
    run.open()
    return run


def test_slots_are_rebuilt_from_the_log(run: StoreRun) -> None:
    for number in range(20):
        run.put(NOW + 30_000 + number * 500, b"%d" % number, f"id {number}")
    # The power goes off while the slot files are written. Half of them are lost, the others are torn.
    run.disk.cut_power_at = run.disk.operations + 20
    with pytest.raises(PowerCut):
        run.spread()
    for survival in (NOTHING, EVERYTHING):
        found = run.after_power_cut(survival)
        found.open()
        found.check()
        assert len(found.promised) == 20


async def test_a_store_that_was_down_for_longer_than_any_wheel_delivers_what_was_due(
    service: Service,
) -> None:
    """A wheel file of two days turns over what is older, and a delay has a maximum of three days."""
    delays = [10.0, 3 * 86_400.0, 8 * 86_400.0, float(YEAR), 5.0 * YEAR]
    async with service.store() as delayed:
        for delay in delays:
            await delayed.schedule(b"%d" % delay, at=BEGIN + delay)
    service.wall.offset += 2 * YEAR
    async with service.store(workers=1):
        await asyncio.sleep(1)
    assert service.payloads == [b"%d" % delay for delay in delays[:-1]]
    service.wall.offset += 4 * YEAR
    async with service.store():
        await asyncio.sleep(1)
    assert service.payloads == [b"%d" % delay for delay in delays]


def test_the_checkpoint_comes_after_the_data(run: StoreRun) -> None:
    """Wherever a checkpoint says that a segment was spread, its messages are on the disk without the log."""
    for number in range(10):
        run.put(NOW + 30_000 + number * 700, b"%d" % number, f"id {number}")
    checkpoints = []

    def look(operation: str) -> None:
        if operation == "rename":
            # The rename itself is not lost, as if it had been synced at once.
            after = run.disk.after_power_cut(NOTHING)
            for name in after.names(PATH / "wal"):
                after.remove(PATH / "wal" / name)
            checkpoints.append(after)

    run.disk.watch = look
    run.spread()
    without_log = StoreRun(checkpoints[-1])
    without_log.open()
    assert sorted(message.payload for message in without_log.found()) == [b"%d" % n for n in range(10)]


async def test_a_second_process_that_takes_itself_for_the_leader_delivers_nothing(tmp_path: Path) -> None:
    async def deliver(id: str, payload: bytes, due: float) -> None:
        raise AssertionError

    store = Store(tmp_path, SLOT_MS, Disk(), NOW)
    with pytest.raises(StoreLocked):
        async with DelayedMessages(tmp_path, deliver):
            raise AssertionError
    store.close()


async def test_after_a_crash_few_messages_come_twice_and_with_the_same_id(service: Service) -> None:
    """A restart that goes back to the last checkpoint repeats all that was delivered since."""
    async with service.store() as delayed:
        for number in range(1_000):
            await delayed.schedule(b"%d" % number, at=BEGIN + 1 + number / 1000)
        # In the middle, and most of it between two checkpoints.
        await asyncio.sleep(1.5)
        crashed = service.disk.after_power_cut(NOTHING)
    before = len(service.delivered)
    service.disk = crashed
    async with service.store():
        await asyncio.sleep(2)
    ids = [delivered.id for delivered in service.delivered]
    assert len(set(ids)) == 1_000
    assert 490 <= before < 510
    # What was delivered in the last 10 ms.
    assert len(ids) - 1_000 <= 15


async def test_a_directory_that_was_copied_while_it_was_closed_is_a_store(tmp_path: Path) -> None:
    delivered: list[bytes] = []
    came = asyncio.Event()

    async def deliver(id: str, payload: bytes, due: float) -> None:
        delivered.append(payload)
        came.set()

    async with DelayedMessages(tmp_path / "a", deliver, clock=lambda: 1e9) as delayed:
        await delayed.schedule(b"payload", at=1e9 + 60)
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    async with DelayedMessages(tmp_path / "b", deliver, clock=lambda: 1e9 + 60):
        await came.wait()
    assert delivered == [b"payload"]
