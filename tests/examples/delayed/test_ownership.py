"""The owner of a partition, its lease, and how it is fenced."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from aiokafka import TopicPartition  # type: ignore[import-untyped]  # has no types
from aiokafka.errors import CommitFailedError  # type: ignore[import-untyped]  # has no types

from examples.delayed.wheel.ownership import HELD, RELEASED, Ownership
from purgatory.testing import VirtualTimeLoop

LEASE = 1.0
Wait = Callable[[int], Awaitable[object]]


class Member:
    """A member of a group, as the group sees it."""

    def __init__(self) -> None:
        self.offsets: dict[int, int] = {}
        self.commits: list[dict[int, int]] = []
        self.fenced = False
        self.answering = anyio.Event()
        self.answering.set()
        self.paused: set[int] = set()

    def subscribe(self, topics: list[str], listener: Ownership) -> None:
        pass

    def pause(self, *partitions: Any) -> None:
        self.paused |= {partition.partition for partition in partitions}

    async def getmany(self, timeout_ms: int) -> None:
        await anyio.sleep(timeout_ms / 1000)

    async def committed(self, partition: Any) -> int | None:
        return self.offsets.get(partition.partition)

    async def commit(self, offsets: dict[Any, int]) -> None:
        fenced = self.fenced
        await self.answering.wait()
        if fenced:
            raise CommitFailedError
        self.commits.append({partition.partition: offset for partition, offset in offsets.items()})
        self.offsets |= self.commits[-1]


async def at_once(partition: int) -> None:
    pass


class Joined(Ownership):
    """A member that takes part in a group. `answered` has what `confirm` said in tasks."""

    def __init__(self, clock: Callable[[], float], prepare: Wait, drained: Wait) -> None:
        self.member = Member()
        self.changed: list[int] = []
        self.answered: list[bool] = []
        super().__init__("delayed", prepare, self.changed.append, drained, 3.0, LEASE, clock)

    async def assign(self, *partitions: int) -> None:
        await self.on_partitions_assigned([TopicPartition("delayed", number) for number in partitions])
        await anyio.wait_all_tasks_blocked()

    async def revoke(self) -> None:
        await self.on_partitions_revoked([TopicPartition("delayed", 0)])

    async def ask(self) -> None:
        self.answered.append(await self.confirm(0))


@asynccontextmanager
async def joined(
    loop: VirtualTimeLoop, *assigned: int, prepare: Wait = at_once, drained: Wait = at_once
) -> AsyncIterator[Joined]:
    it = Joined(loop.time, prepare, drained)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(it.run, it.member)
        await anyio.wait_all_tasks_blocked()
        await it.assign(*assigned)
        yield it
        tasks.cancel_scope.cancel()


async def test_a_member_owns_what_it_is_assigned_and_reads_none_of_it(virtual_time: VirtualTimeLoop) -> None:
    async with joined(virtual_time, 0, 2) as it:
        assert it.owned == {0, 2}
        assert sorted(it.changed) == [0, 2]
        assert it.member.paused == {0, 2}
        assert await it.confirm(0)
        assert not await it.confirm(1)


async def test_a_lease_is_renewed_by_a_commit_when_it_is_over_and_not_before(
    virtual_time: VirtualTimeLoop,
) -> None:
    async with joined(virtual_time, 0, 1) as it:
        for seconds, commits in ((0, 1), (LEASE - 0.01, 1), (0.02, 2)):
            await anyio.sleep(seconds)
            assert await it.confirm(0)
            assert await it.confirm(1)
            assert it.member.commits == commits * [{0: HELD, 1: HELD}]


async def test_the_lease_counts_from_before_the_commit_that_proves_it(virtual_time: VirtualTimeLoop) -> None:
    async with joined(virtual_time, 0) as it:
        it.member.answering = anyio.Event()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(it.ask)
            await anyio.sleep(LEASE + 0.1)
            it.member.answering.set()
        # The first answer came too late, so it proved nothing.
        assert len(it.member.commits) == 2


async def test_an_owner_whose_commit_fails_owns_nothing(virtual_time: VirtualTimeLoop) -> None:
    async with joined(virtual_time, 0, 1) as it:
        assert await it.confirm(0)
        it.member.fenced = True
        await anyio.sleep(LEASE)
        it.changed.clear()
        assert not await it.confirm(0)
        assert it.owned == set()
        assert sorted(it.changed) == [0, 1]
        assert not await it.confirm(1)


@pytest.mark.parametrize(
    ("is_assigned_again", "commits"),
    [(False, [{0: HELD}, {0: RELEASED}]), (True, [{0: HELD}, {0: RELEASED}, {0: HELD}])],
)
async def test_a_commit_that_is_answered_after_the_group_has_changed_proves_nothing(
    virtual_time: VirtualTimeLoop, is_assigned_again: bool, commits: list[dict[int, int]]
) -> None:
    async with joined(virtual_time, 0) as it:
        it.member.answering = anyio.Event()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(it.ask)
            await anyio.wait_all_tasks_blocked()
            tasks.start_soon(it.revoke)
            await anyio.wait_all_tasks_blocked()
            if is_assigned_again:
                await it.assign(0)
            it.member.answering.set()
        # The next generation needs a commit of its own.
        assert it.answered == [is_assigned_again]
        assert it.member.commits == commits


async def test_a_new_owner_waits_for_the_lease_of_one_that_did_not_release(
    virtual_time: VirtualTimeLoop,
) -> None:
    async with joined(virtual_time) as it:
        it.member.offsets = {0: HELD, 1: RELEASED}
        await it.assign(0, 1)
        await anyio.sleep(LEASE - 0.01)
        assert it.owned == {1}
        await anyio.sleep(0.02)
        assert it.owned == {0, 1}


@pytest.mark.parametrize("is_revoked", [False, True])
async def test_a_partition_is_owned_once_it_is_prepared_unless_it_is_revoked_before(
    virtual_time: VirtualTimeLoop, is_revoked: bool
) -> None:
    prepared = anyio.Event()
    async with joined(virtual_time, 0, prepare=lambda _: prepared.wait()) as it:
        assert it.owned == set()
        if is_revoked:
            await it.revoke()
        prepared.set()
        await anyio.wait_all_tasks_blocked()
        assert it.owned == (set() if is_revoked else {0})


async def test_a_partition_is_released_when_nothing_of_it_is_being_forwarded(
    virtual_time: VirtualTimeLoop,
) -> None:
    forwarded = anyio.Event()
    async with joined(virtual_time, 0, drained=lambda _: forwarded.wait()) as it:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(it.release)
            await anyio.wait_all_tasks_blocked()
            assert it.owned == set()
            assert it.member.commits == []
            forwarded.set()
        assert it.member.commits == [{0: RELEASED}]


async def test_a_partition_that_cannot_be_drained_in_time_is_not_released(
    virtual_time: VirtualTimeLoop,
) -> None:
    async with joined(virtual_time, 0, drained=lambda _: anyio.sleep_forever()) as it:
        await it.release()
        assert it.member.commits == []


@pytest.mark.parametrize("released", [True, False])
async def test_a_member_that_owns_nothing_commits_nothing(
    virtual_time: VirtualTimeLoop, released: bool
) -> None:
    async with joined(virtual_time) as it:
        if released:
            await it.release()
        assert not await it.confirm(0)
        assert it.member.commits == []
