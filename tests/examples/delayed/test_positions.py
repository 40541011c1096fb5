"""What a replica of a partition reads again after a restart, and the file that says so."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from examples.delayed.wheel.positions import Positions, PositionsFile
from purgatory.delayed import Receipt
from tests.examples.delayed.partition_replica import done, due_in, replica


def stored(directory: Path) -> Positions | None:
    return PositionsFile(directory / "positions.json").stored


async def test_what_is_read_again_after_a_crash_and_was_forwarded_is_not_forwarded_again(
    tmp_path: Path,
) -> None:
    record = due_in(-1)
    async with replica(tmp_path) as it:
        it.own()
        await it.add(record)
        await it.target.changed.wait()
        await it.forgets()
        # The positions are not stored.
    async with replica(tmp_path) as it:
        assert it.wheel.positions == Positions(0, 0)
        await it.add(record)
        await it.waits()
        await it.clear(done(0))
        it.own()
        await it.forgets()
        assert it.target.delivered == []


async def test_a_replica_goes_on_where_it_has_stored_its_positions(tmp_path: Path) -> None:
    async with replica(tmp_path) as it:
        await it.add(due_in(3600), due_in(3600, offset=7))
        await it.clear(done(4))
        await it.wheel.store_positions()
    async with replica(tmp_path) as it:
        assert it.wheel.positions == Positions(8, 5)
        assert await it.wheel.store.find("3-0") is None
        receipt = await it.wheel.store.find("3-7")
        assert isinstance(receipt, Receipt)


async def test_an_id_is_read_again_after_a_crash_unless_its_record_has_ended(tmp_path: Path) -> None:
    """Otherwise the record would wait for its turn forever."""
    async with replica(tmp_path) as it:
        it.target.open = anyio.Event()
        it.own()
        await it.add(due_in(-1), due_in(3600, offset=1))
        await it.owner.asked.wait()
        # Somebody else has forwarded it while this instance is about to.
        await it.clear(done(0, b"3-1"), done(1, b"3-0"), done(2, b"3-1"))
        assert it.wheel.positions == Positions(2, 3)
        await it.wheel.store_positions()
        assert stored(tmp_path) == Positions(2, 1)
        it.target.open.set()
        await it.forgets()
        await it.wheel.store_positions()
        assert stored(tmp_path) == Positions(2, 3)


async def test_the_positions_are_stored_behind_the_notes_of_what_has_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An id that is not read again must not belong to a record that the store has again after a crash."""
    async with replica(tmp_path) as it:
        find = it.wheel.store.find
        steps: list[object] = []

        async def noting(id: str) -> Receipt | None:
            # The store answers in order, so what was noted before is on the disk.
            steps.append(it.wheel.positions)
            receipt = await find(id)
            steps.append("noted")
            return receipt

        await it.add(due_in(-1))
        await it.waits()
        await it.clear(done(0))
        await it.waits(0)
        monkeypatch.setattr(it.wheel.store, "find", noting)
        monkeypatch.setattr(PositionsFile, "store", lambda file, positions: steps.append(positions))
        await it.wheel.store_positions()
    assert steps[:3] == [Positions(1, 1), "noted", Positions(1, 1)]


async def test_an_id_that_finds_no_room_on_the_disk_is_kept_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with replica(tmp_path) as it:

        async def full(receipt: Receipt) -> bool:
            raise OSError(28, "No space left on device")

        await it.add(due_in(3600))
        with monkeypatch.context() as patched:
            patched.setattr(it.wheel.store, "cancel", full)
            await it.clear(done(0))
        await it.wheel.store_positions()
        assert stored(tmp_path) == Positions(1, 0)
        # It is read again.
        await it.clear(done(0))
        await it.wheel.store_positions()
        assert stored(tmp_path) == Positions(1, 1)
        assert await it.wheel.store.find("3-0") is None


def test_the_file_has_what_was_stored_last_and_whole(tmp_path: Path) -> None:
    path = tmp_path / "positions.json"
    file = PositionsFile(path)
    assert file.stored is None
    for positions in (Positions(1, 0), Positions(70_000, 3)):
        file.store(positions)
        path.with_suffix(".new").write_bytes(b'{"records": 9')
        assert PositionsFile(path).stored == file.stored == positions


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "positions.json").write_bytes(b'{"records": 9')
    with pytest.raises(ValueError, match="delimiter"):
        PositionsFile(tmp_path / "positions.json")
