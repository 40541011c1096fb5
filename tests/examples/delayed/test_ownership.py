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


class Member:
    """A member of a group, as the group sees it."""

    def __init__(self) -> None:
        self.offsets: dict[int, int] = {}
        self.commits: list[dict[int, int]] = []
        self.fenced = False
        self.answering = anyio.Event()
        self.answering.set()
        self.paused: set[int] = set()
        self.subscribed = anyio.Event()

    def subscribe(self, topics: list[str], listener: Ownership) -> None:
        self.subscribed.set()

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


async def ready(partition: int) -> None:
    pass


@asynccontextmanager
async def joined(
    loop: VirtualTimeLoop,
    member: Member,
    *,
    prepare: Callable[[int], Awaitable[None]] = ready,
    drained: Callable[[int], Awaitable[None]] = ready,
) -> AsyncIterator[tuple[Ownership, list[int]]]:
    """A member that takes part in the group, and the changes that it has reported."""
    changed: list[int] = []
    ownership = Ownership("delayed", prepare, changed.append, drained, 3.0, LEASE, clock=loop.time)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ownership.run, member)
        await member.subscribed.wait()
        yield ownership, changed
        tasks.cancel_scope.cancel()


async def assign(ownership: Ownership, *partitions: int) -> None:
    await ownership.on_partitions_assigned([TopicPartition("delayed", number) for number in partitions])


async def test_a_member_owns_what_it_is_assigned_and_reads_none_of_it(virtual_time: VirtualTimeLoop) -> None:
    member = Member()
    async with joined(virtual_time, member) as (ownership, changed):
        await assign(ownership, 0, 2)
        await anyio.wait_all_tasks_blocked()
        assert ownership.owned == {0, 2}
        assert sorted(changed) == [0, 2]
        assert member.paused == {0, 2}
        assert await ownership.confirm(0)
        assert not await ownership.confirm(1)


async def test_a_lease_is_renewed_by_a_commit_when_it_is_over_and_not_before(
    virtual_time: VirtualTimeLoop,
) -> None:
    member = Member()
    async with joined(virtual_time, member) as (ownership, _):
        await assign(ownership, 0, 1)
        await anyio.wait_all_tasks_blocked()
        for seconds, commits in ((0, 1), (LEASE - 0.01, 1), (0.02, 2)):
            await anyio.sleep(seconds)
            assert await ownership.confirm(0)
            assert await ownership.confirm(1)
            assert member.commits == commits * [{0: HELD, 1: HELD}]


async def test_the_lease_counts_from_before_the_commit_that_proves_it(virtual_time: VirtualTimeLoop) -> None:
    member = Member()
    async with joined(virtual_time, member) as (ownership, _):
        await assign(ownership, 0)
        await anyio.wait_all_tasks_blocked()
        member.answering = anyio.Event()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ownership.confirm, 0)
            await anyio.sleep(LEASE + 0.1)
            member.answering.set()
        # The first answer came too late, so it proved nothing.
        assert len(member.commits) == 2


async def test_an_owner_whose_commit_fails_owns_nothing(virtual_time: VirtualTimeLoop) -> None:
    member = Member()
    async with joined(virtual_time, member) as (ownership, changed):
        await assign(ownership, 0, 1)
        await anyio.wait_all_tasks_blocked()
        assert await ownership.confirm(0)
        member.fenced = True
        await anyio.sleep(LEASE)
        changed.clear()
        assert not await ownership.confirm(0)
        assert ownership.owned == set()
        assert sorted(changed) == [0, 1]
        assert not await ownership.confirm(1)


async def test_a_commit_that_is_answered_after_the_group_has_changed_proves_nothing(
    virtual_time: VirtualTimeLoop,
) -> None:
    member = Member()
    async with joined(virtual_time, member) as (ownership, _):
        await assign(ownership, 0)
        await anyio.wait_all_tasks_blocked()
        member.answering = anyio.Event()
        confirmed: list[bool] = []

        async def confirm() -> None:
            confirmed.append(await ownership.confirm(0))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(confirm)
            await anyio.wait_all_tasks_blocked()
            tasks.start_soon(ownership.on_partitions_revoked, [TopicPartition("delayed", 0)])
            await anyio.wait_all_tasks_blocked()
            member.answering.set()
        assert confirmed == [False]


async def test_a_commit_of_an_earlier_generation_gives_no_lease_in_the_next_one(
    virtual_time: VirtualTimeLoop,
) -> None:
    member = Member()
    async with joined(virtual_time, member) as (ownership, _):
        await assign(ownership, 0)
        await anyio.wait_all_tasks_blocked()
        member.answering = anyio.Event()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ownership.confirm, 0)
            await anyio.wait_all_tasks_blocked()
            tasks.start_soon(ownership.on_partitions_revoked, [TopicPartition("delayed", 0)])
            await anyio.wait_all_tasks_blocked()
            await assign(ownership, 0)
            await anyio.wait_all_tasks_blocked()
            member.answering.set()
        assert member.commits == [{0: HELD}, {0: RELEASED}, {0: HELD}]


async def test_a_new_owner_waits_for_the_lease_of_one_that_did_not_release(
    virtual_time: VirtualTimeLoop,
) -> None:
    member = Member()
    member.offsets = {0: HELD, 1: RELEASED}
    async with joined(virtual_time, member) as (ownership, _):
        await assign(ownership, 0, 1)
        await anyio.sleep(LEASE - 0.01)
        assert ownership.owned == {1}
        await anyio.sleep(0.02)
        assert ownership.owned == {0, 1}


async def test_a_partition_is_owned_once_it_is_prepared(virtual_time: VirtualTimeLoop) -> None:
    prepared = anyio.Event()

    async def prepare(partition: int) -> None:
        await prepared.wait()

    async with joined(virtual_time, Member(), prepare=prepare) as (ownership, _):
        await assign(ownership, 0)
        await anyio.wait_all_tasks_blocked()
        assert ownership.owned == set()
        prepared.set()
        await anyio.wait_all_tasks_blocked()
        assert ownership.owned == {0}


async def test_a_partition_that_is_revoked_while_it_is_prepared_is_not_owned(
    virtual_time: VirtualTimeLoop,
) -> None:
    prepared = anyio.Event()

    async def prepare(partition: int) -> None:
        await prepared.wait()

    async with joined(virtual_time, Member(), prepare=prepare) as (ownership, _):
        await assign(ownership, 0)
        await anyio.wait_all_tasks_blocked()
        await ownership.on_partitions_revoked([TopicPartition("delayed", 0)])
        prepared.set()
        await anyio.wait_all_tasks_blocked()
        assert ownership.owned == set()


async def test_a_partition_is_released_when_nothing_of_it_is_being_forwarded(
    virtual_time: VirtualTimeLoop,
) -> None:
    member, forwarded = Member(), anyio.Event()

    async def drained(partition: int) -> None:
        await forwarded.wait()

    async with joined(virtual_time, member, drained=drained) as (ownership, _):
        await assign(ownership, 0)
        await anyio.wait_all_tasks_blocked()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ownership.release)
            await anyio.wait_all_tasks_blocked()
            assert ownership.owned == set()
            assert member.commits == []
            forwarded.set()
        assert member.commits == [{0: RELEASED}]


async def test_a_partition_that_cannot_be_drained_in_time_is_not_released(
    virtual_time: VirtualTimeLoop,
) -> None:
    member = Member()
    async with joined(virtual_time, member, drained=lambda _: anyio.sleep_forever()) as (ownership, _):
        await assign(ownership, 0)
        await anyio.wait_all_tasks_blocked()
        await ownership.release()
        assert member.commits == []


@pytest.mark.parametrize("released", [True, False])
async def test_a_member_that_owns_nothing_commits_nothing(
    virtual_time: VirtualTimeLoop, released: bool
) -> None:
    member = Member()
    async with joined(virtual_time, member) as (ownership, _):
        if released:
            await ownership.release()
        assert not await ownership.confirm(0)
        assert member.commits == []
