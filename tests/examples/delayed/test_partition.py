"""A partition of the replicated wheel: what is stored, forwarded and cleared."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from examples.delayed.wheel.positions import Positions
from tests.examples.delayed.partition_replica import NUMBER, done, due_in, replica


async def test_the_owner_forwards_what_is_due_and_tells_the_others(tmp_path: Path) -> None:
    async with replica(tmp_path) as it:
        it.own()
        await it.add(due_in(-1))
        await it.target.changed.wait()
        (request,) = it.target.delivered
        assert (request.id, request.target, request.value) == ("3-0", "orders", b"value")
        assert it.target.ids == [("delayed-done", b"3-0", NUMBER)]
        await it.forgets()


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
