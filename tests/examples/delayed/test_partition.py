"""A partition of the replicated wheel: what is stored, forwarded, cleared and read again."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import anyio
import pytest

from examples.delayed.forwarder import Forwarder
from examples.delayed.request import Header, Request
from examples.delayed.statistics import Statistics
from examples.delayed.topics import Topics
from examples.delayed.wheel import partition as partition_module
from examples.delayed.wheel.ownership import Ownership
from examples.delayed.wheel.partition import PartitionWheel
from examples.delayed.wheel.positions import Positions, load_positions
from purgatory import Purgatory
from purgatory.delayed import Receipt

NUMBER = 3


@dataclass(frozen=True)
class StoredRecord:
    offset: int
    headers: tuple[Header, ...] = ()
    key: bytes | None = None
    value: bytes | None = b"value"
    partition: int = NUMBER
    timestamp: int = 0


def due_in(seconds: float, offset: int = 0) -> StoredRecord:
    at = b"%d" % round((time.time() + seconds) * 1000)
    return StoredRecord(offset, (("deliver-at", at), ("target", b"orders")))


def done(offset: int, id: bytes = b"3-0") -> StoredRecord:
    return StoredRecord(offset, key=id, value=b"")


class Target(Forwarder):
    """Remembers what is sent. Sending takes until `open` is set."""

    def __init__(self) -> None:
        self.topics, self.statistics = Topics(), Statistics()
        self.delivered: list[Request] = []
        self.ids: list[tuple[str, bytes | None, int | None]] = []
        self.changed = anyio.Event()
        self.cancelled: set[str] = set()
        self.asked = anyio.Event()
        self.open, self.answering = anyio.Event(), anyio.Event()
        self.open.set()
        self.answering.set()

    async def is_cancelled(self, id: str) -> bool:
        self.asked.set()
        await self.answering.wait()
        return id in self.cancelled

    async def forward(self, request: Request) -> None:
        await self.open.wait()
        self.delivered.append(request)

    async def send(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[Header],
        partition: int | None = None,
    ) -> int:
        self.ids.append((topic, key, partition))
        self.changed.set()
        return len(self.ids) - 1


class Owner(Ownership):
    """What the group says, as the test wants it. `fenced` members believe that they own a partition."""

    def __init__(self) -> None:
        self.owned = set()
        self.fenced = False
        self.asked = anyio.Event()

    async def confirm(self, partition: int) -> bool:
        self.asked.set()
        if self.fenced:
            self.owned = set()
        return not self.fenced


class Replica:
    """A partition with all that it needs."""

    def __init__(self, path: Path, purgatory: Purgatory) -> None:
        self.target = Target()
        self.owner = Owner()
        self.purgatory = purgatory
        self.end = 10
        self.wheel = PartitionWheel(NUMBER, path, self.target, self.owner, purgatory, self._end)

    async def _end(self, number: int) -> int:
        assert number == NUMBER
        return self.end

    def own(self) -> None:
        self.owner.owned = {NUMBER}
        self.wheel.owner_changed()

    async def add(self, *records: StoredRecord) -> None:
        await self.wheel.add(records, records[-1].offset + 1)

    async def clear(self, *ids: StoredRecord) -> None:
        await self.wheel.clear(ids, ids[-1].offset + 1)

    async def waits(self, count: int = 1) -> None:
        """Return when so many records wait for their turn."""
        while self.purgatory.statistics().pending != count:
            await anyio.lowlevel.checkpoint()

    async def forgets(self, id: str = "3-0") -> None:
        """Return when the store no longer has a record."""
        while await self.wheel.store.find(id) is not None:
            pass


@asynccontextmanager
async def replica(path: Path) -> AsyncIterator[Replica]:
    """A replica that ends as at SIGTERM: nobody waits for what is due."""
    async with Purgatory() as purgatory:
        running = Replica(path, purgatory)
        with anyio.CancelScope() as scope:
            async with running.wheel.store:
                yield running
                scope.cancel()
                await anyio.lowlevel.checkpoint()


async def test_the_owner_forwards_what_is_due_and_tells_the_others(tmp_path: Path) -> None:
    async with replica(tmp_path) as it:
        it.own()
        await it.add(due_in(-1))
        await it.target.changed.wait()
        (request,) = it.target.delivered
        assert (request.id, request.target, request.value) == ("3-0", "orders", b"value")
        assert it.target.ids == [("delayed-done", b"3-0", NUMBER)]
        await it.forgets()


async def test_the_owner_never_forwards_early(tmp_path: Path) -> None:
    async with replica(tmp_path) as it:
        it.own()
        await it.add(due_in(0.05))
        await it.target.changed.wait()
        assert time.time() * 1000 >= it.target.delivered[0].due


async def test_a_record_that_is_due_waits_for_its_owner(tmp_path: Path) -> None:
    async with replica(tmp_path) as it:
        await it.add(due_in(-1))
        await it.waits()
        assert it.target.delivered == []
        it.own()
        await it.target.changed.wait()
        assert len(it.target.delivered) == 1


async def test_a_record_that_is_due_and_that_another_has_forwarded_is_cleared(tmp_path: Path) -> None:
    async with replica(tmp_path) as it:
        await it.add(due_in(-1))
        await it.waits()
        await it.clear(done(0))
        await it.waits(0)
        await it.forgets()
        it.own()
        assert it.target.delivered == []


async def test_a_record_that_another_has_forwarded_before_it_is_due_here_is_cleared(tmp_path: Path) -> None:
    """The clocks of two machines differ."""
    async with replica(tmp_path) as it:
        it.own()
        await it.add(due_in(3600))
        await it.clear(done(0))
        assert await it.wheel.store.find("3-0") is None


async def test_an_id_waits_for_its_record(tmp_path: Path) -> None:
    """The readers of the two topics are not equally fast."""
    async with replica(tmp_path) as it, anyio.create_task_group() as tasks:
        tasks.start_soon(it.clear, done(0))
        await it.waits()
        assert it.wheel.positions == Positions(0, 0)
        await it.add(due_in(3600))
        await it.wheel.cleared(1)
        assert it.wheel.positions == Positions(1, 1)
        assert await it.wheel.store.find("3-0") is None


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
        assert load_positions(tmp_path / "positions.json") == Positions(2, 1)
        it.target.open.set()
        await it.forgets()
        await it.wheel.store_positions()
        assert load_positions(tmp_path / "positions.json") == Positions(2, 3)


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
        monkeypatch.setattr(
            partition_module, "store_positions", lambda path, positions: steps.append(positions)
        )
        await it.wheel.store_positions()
    assert steps[:3] == [Positions(1, 1), "noted", Positions(1, 1)]


async def test_the_same_record_twice_is_stored_once(tmp_path: Path) -> None:
    record = due_in(3600)
    async with replica(tmp_path) as it:
        await it.add(record)
        await it.add(record)
        assert it.wheel.store.statistics().scheduled == 1


async def test_an_owner_that_is_fenced_forwards_nothing(tmp_path: Path) -> None:
    async with replica(tmp_path) as it:
        it.owner.fenced = True
        it.own()
        await it.add(due_in(-1))
        await it.owner.asked.wait()
        await it.waits()
        assert it.target.delivered == []
        await it.clear(done(0))
        await it.forgets()
        assert it.target.delivered == []


async def test_a_record_that_is_cancelled_is_not_forwarded_and_the_others_are_told(tmp_path: Path) -> None:
    async with replica(tmp_path) as it:
        it.target.cancelled = {"3-0"}
        it.own()
        await it.add(due_in(-1))
        await it.target.changed.wait()
        await it.forgets()
        assert it.target.ids == [("delayed-done", b"3-0", NUMBER)]
        assert (it.target.delivered, it.target.statistics.cancelled) == ([], 1)


@pytest.mark.parametrize("cleared", [True, False])
async def test_an_owner_that_changes_during_the_look_for_a_cancel_forwards_nothing(
    tmp_path: Path, cleared: bool
) -> None:
    async with replica(tmp_path) as it:
        it.target.answering = anyio.Event()
        it.own()
        await it.add(due_in(-1))
        await it.target.asked.wait()
        if cleared:
            # This instance is the owner again.
            await it.clear(done(0))
        else:
            it.owner.fenced = True
        it.target.answering.set()
        await it.owner.asked.wait()
        if not cleared:
            await it.waits()
            await it.clear(done(0))
        await it.forgets()
        assert (it.target.delivered, it.target.ids) == ([], [])


async def test_a_partition_is_drained_when_its_last_record_is_acknowledged(tmp_path: Path) -> None:
    async with replica(tmp_path) as it, anyio.create_task_group() as tasks:
        drained = anyio.Event()

        async def drain() -> None:
            await it.wheel.drained()
            drained.set()

        it.target.open = anyio.Event()
        it.own()
        await it.add(due_in(-1))
        await it.owner.asked.wait()
        tasks.start_soon(drain)
        await it.waits()
        assert not drained.is_set()
        it.target.open.set()
        await drained.wait()
        assert len(it.target.ids) == 1


async def test_a_record_that_is_rejected_is_forwarded_as_any_other(tmp_path: Path) -> None:
    async with replica(tmp_path) as it:
        it.own()
        await it.add(StoredRecord(0))
        await it.target.changed.wait()
        (request,) = it.target.delivered
        assert request.target == "delayed-rejected"
        assert "missing" in request.reason


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
        assert load_positions(tmp_path / "positions.json") == Positions(1, 0)
        # It is read again.
        await it.clear(done(0))
        await it.wheel.store_positions()
        assert load_positions(tmp_path / "positions.json") == Positions(1, 1)
        assert await it.wheel.store.find("3-0") is None


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
