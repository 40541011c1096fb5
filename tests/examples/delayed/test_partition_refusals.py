"""Records that a partition of the wheel cannot store."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import anyio
import pytest

from examples.delayed.wheel import partition as partition_module
from purgatory.delayed import Receipt
from tests.examples.delayed.partition_replica import StoredRecord, done, due_in, replica


@pytest.mark.parametrize("at", [b"1125899906842623", b"1125899906842624", b"1800000000000000", b"9" * 16])
async def test_each_due_time_is_stored_or_rejected(tmp_path: Path, at: bytes) -> None:
    async with replica(tmp_path) as it:
        it.own()
        await it.add(StoredRecord(0, (("deliver-at", at), ("target", b"orders"))))
        if await it.wheel.store.find("3-0") is None:
            await it.target.changed.wait()
            assert "too late" in it.target.delivered[0].reason


async def test_a_record_that_is_too_large_for_the_store_is_rejected_without_its_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partition_module, "_LARGEST", 200)
    async with replica(tmp_path) as it:
        it.own()
        await it.add(
            replace(due_in(3600), value=bytes(300)),
            replace(due_in(3600, offset=1), key=bytes(300)),
        )
        while len(it.target.ids) < 2:
            await anyio.lowlevel.checkpoint()
        for request in it.target.delivered:
            assert (request.target, request.key, request.value) == ("delayed-rejected", None, None)
            assert "too long" in request.reason


async def test_a_directory_with_another_record_of_the_same_position_is_refused(tmp_path: Path) -> None:
    async with replica(tmp_path) as it:
        await it.add(due_in(3600))
        with pytest.RaisesGroup(pytest.RaisesExc(ValueError, match="start with another directory")):
            await it.add(due_in(7200))


async def test_a_full_disk_holds_up_what_finds_no_room_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(partition_module, "_AGAIN", 0)
    async with replica(tmp_path) as it, anyio.create_task_group() as tasks:
        schedule, full = it.wheel.store.schedule, True

        async def with_room_for_one(payload: bytes, *, at: float, id: str) -> Receipt:
            if full and id != "3-1":
                raise OSError(28, "No space left on device")
            return await schedule(payload, at=at, id=id)

        monkeypatch.setattr(it.wheel.store, "schedule", with_room_for_one)
        it.own()
        tasks.start_soon(it.add, due_in(-1), due_in(-1, offset=1), due_in(-1, offset=2))
        # It takes part in the group.
        await it.wheel.read(3)
        await it.target.changed.wait()
        assert [request.id for request in it.target.delivered] == ["3-1"]
        assert it.wheel.positions.records == 0
        assert "No space left" in caplog.text
        full = False
        while len(it.target.delivered) < 3:
            await anyio.lowlevel.checkpoint()


@pytest.mark.parametrize(
    "id", [b"nonsense", None, b"\xff", b"3-10", b"3-" + b"9" * 5_000, b"4-0", "3-\u0661".encode(), b"3--1"]
)
async def test_what_is_the_id_of_no_record_is_skipped(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, id: bytes | None
) -> None:
    async with replica(tmp_path) as it:
        await it.add(due_in(3600), due_in(3600, offset=1))
        with anyio.fail_after(5):
            await it.clear(StoredRecord(0, key=id), done(1, b"3-1"))
        assert it.wheel.positions.done == 2
        assert await it.wheel.store.find("3-0") is not None
        assert await it.wheel.store.find("3-1") is None
        assert caplog.messages == ["record 0 of delayed-done has no id"]
