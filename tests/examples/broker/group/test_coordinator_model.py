"""Invariants of a group under random clients, log failures, handovers and passing time."""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from examples.broker.errors import ApiError, ErrorCode
from examples.broker.group.coordinator import GroupConfig
from examples.broker.group.group import GroupState
from examples.broker.group.requests import JoinResult, MemberIdentity, SyncResult
from purgatory.testing import VirtualTimeLoop
from tests.examples.broker.group.group_client import (
    EVENTS,
    GROUP,
    Client,
    Hosts,
    MemoryLog,
    lead,
    send,
    settled,
    start,
)

CONFIG = GroupConfig(group_initial_rebalance_delay=3, group_max_size=4)
# Two of them share a group instance id, as a client and its replacement do.
INSTANCES = (None, None, None, "static", "static", "other")
CLIENTS = st.integers(0, len(INSTANCES) - 1)


class GroupMachine(RuleBasedStateMachine):
    """Requests are sent and may stay pending. A client uses its answer in its next request."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner(loop_factory=VirtualTimeLoop)
        self.term = self.commits = self.acknowledged = 0
        self.generations: list[tuple[int, int]] = []
        self.leaders: dict[tuple[int, int], str] = {}
        self.sent: list[asyncio.Task[Any]] = []
        self.runner.run(self.set_up())

    async def set_up(self) -> None:
        self.log = MemoryLog()
        self.hosts = Hosts(self.log)
        self.coordinator = await self.hosts.coordinate(CONFIG)
        self.partition = self.coordinator.partition_for(GROUP)
        await lead(self.coordinator, self.partition)
        self.clients = [
            Client(self.coordinator, instance=instance, session=6 + 3 * index, rebalance=20)
            for index, instance in enumerate(INSTANCES)
        ]

    def begin(self, request: Coroutine[Any, Any, Any]) -> None:
        async def begin() -> None:
            self.sent.append(await start(request))

        self.runner.run(begin())

    @rule(indices=st.sets(CLIENTS, min_size=1))
    def rebalance(self, indices: set[int]) -> None:
        """These clients join, twice if necessary, and sync, as consumers do."""
        for _ in range(2):
            for index in indices:
                self.join(index, b"a", old=False)
        self.pass_time(3)
        for index in indices:
            self.sync(index)

    @rule(index=CLIENTS, topics=st.sampled_from([b"a", b"b"]), old=st.booleans())
    def join(self, index: int, topics: bytes, old: bool) -> None:
        client = self.clients[index]
        client.protocols = (("range", topics),)

        async def join() -> None:
            term = self.term
            result = await client.join_once(requires_known_member_id=not old)
            self.joined(client, term, result)

        self.begin(join())

    def joined(self, client: Client, term: int, result: JoinResult) -> None:
        if result.error in (ErrorCode.unknown_member_id, ErrorCode.fenced_instance_id):
            client.member_id = ""
        elif result.error is ErrorCode.member_id_required:
            client.member_id = result.member_id
        elif result.error is ErrorCode.none:
            client.member_id, client.generation_id = result.member_id, result.generation_id
            client.joined = result
            self.generations.append((term, result.generation_id))
            assert not result.members or result.leader_id == result.member_id
            assert result.leader_id, "a generation has a leader"
            if result.members and not result.skip_assignment:
                assert client.member_id in {member.member_id for member in result.members}
                leader = self.leaders.setdefault((term, result.generation_id), result.member_id)
                assert leader == result.member_id, "two leaders of one generation"
        else:
            assert result.error in (
                ErrorCode.rebalance_in_progress,
                ErrorCode.group_max_size_reached,
                ErrorCode.not_coordinator,
                ErrorCode.coordinator_not_available,
            ), result

    @rule(index=CLIENTS)
    def sync(self, index: int) -> None:
        client = self.clients[index]
        generation = client.generation_id
        assignments = {member.member_id: b"%d" % generation for member in client.joined.members}

        async def sync() -> None:
            result: SyncResult = await client.sync(assignments)
            if result.error is ErrorCode.none:
                assert result.assignment in (b"%d" % generation, b""), "an assignment of another generation"

        self.begin(sync())

    @rule(index=CLIENTS, request=st.sampled_from(["heartbeat", "leave"]))
    def request(self, index: int, request: str) -> None:
        self.begin(send(self.clients[index], request))

    @rule(instance=st.sampled_from(["static", "other"]))
    def remove_static_member(self, instance: str) -> None:
        self.begin(send(self.clients[0], "leave", member=MemberIdentity("", instance)))

    @rule(index=CLIENTS)
    def commit(self, index: int) -> None:
        self.commits += 1
        number = self.commits

        async def commit() -> None:
            try:
                error = await self.clients[index].commit(EVENTS, number)
            except ApiError:
                return
            if error is ErrorCode.none:
                self.acknowledged = max(self.acknowledged, number)

        self.begin(commit())

    @rule(position=st.integers(0, 100))
    def vanish(self, position: int) -> None:
        """A client disconnects while it waits."""
        waiting = [task for task in self.sent if not task.done()]
        if waiting:
            waiting[position % len(waiting)].cancel()
            self.runner.run(settled())

    @rule(seconds=st.sampled_from([0.5, 1, 2, 3, 5, 6, 10, 20, 30]))
    def pass_time(self, seconds: float) -> None:
        self.runner.run(asyncio.sleep(seconds))
        self.runner.run(settled())

    @rule(error=st.sampled_from([ErrorCode.none, ErrorCode.none, ErrorCode.not_enough_replicas]))
    def fail_appends(self, error: ErrorCode) -> None:
        self.log.error = error

    @rule(hold=st.booleans())
    def hold_appends(self, hold: bool) -> None:
        if hold:
            self.log.appended.clear()
        else:
            self.log.appended.set()
        self.runner.run(settled())

    @rule()
    def hand_over(self) -> None:
        async def hand_over() -> None:
            self.coordinator.resigned(self.partition)
            assert all(figures.pending == 0 for figures in self.coordinator.statistics().values())
            self.term += 1
            await lead(self.coordinator, self.partition)

        self.runner.run(hand_over())

    @rule()
    def delete(self) -> None:
        async def delete() -> None:
            group = self.coordinator._groups.find(GROUP)
            if group is not None and group.state is GroupState.EMPTY:
                # Pending commits are deleted with the group.
                self.log.appended.set()
                await settled()
                self.term += 1
                self.acknowledged = 0
            with suppress(ApiError):
                await self.coordinator.delete_group(GROUP)

        self.begin(delete())

    @invariant()
    def generations_only_grow(self) -> None:
        for term in {term for term, _ in self.generations}:
            seen = [generation for of, generation in self.generations if of == term]
            assert seen == sorted(seen)

    @invariant()
    def nobody_failed(self) -> None:
        for task in self.sent:
            if task.done() and not task.cancelled():
                task.result()
        self.sent = [task for task in self.sent if not task.done()]

    @invariant()
    def what_was_acknowledged_is_seen(self) -> None:
        assert self.coordinator.fetch_offsets(GROUP, [EVENTS])[EVENTS].offset >= (self.acknowledged or -1)

    @invariant()
    def books_are_right(self) -> None:
        sessions = joins = 0
        pending = {name: figures.pending for name, figures in self.coordinator.statistics().items()}
        for group in self.coordinator._groups:
            members = group.members.values()
            assert (group.leader_id in group.members) if members else group.leader_id is None
            assert group.static_members == {
                member.group_instance_id: member.member_id
                for member in members
                if member.group_instance_id is not None
            }
            assert len(members) <= 2 * CONFIG.group_max_size
            assert not (group.state is GroupState.EMPTY and members)
            assert members or group.state in (GroupState.EMPTY, GroupState.PREPARING_REBALANCE)
            assert not any(member.awaits_sync for member in members) or (
                group.state is GroupState.COMPLETING_REBALANCE
            )
            sessions += len(members) + len(group.pending_members)
            joins += group.state is GroupState.PREPARING_REBALANCE
            joins += sum(member.awaits_join for member in members)
            syncing = group.state in (GroupState.COMPLETING_REBALANCE, GroupState.STABLE)
            awaiting = sum(member.awaits_sync for member in members)
            assert pending["sync"] == bool(syncing and group.pending_sync) + awaiting
            assert group.pending_sync <= set(group.members)
            for member in members:
                key = group.group_id, member.member_id
                (session,) = self.coordinator._purgatories["heartbeat"].operations(key)
                assert (session.deadline is None) == member.awaits_answer
        assert (pending["heartbeat"], pending["join"]) == (sessions, joins)

    def teardown(self) -> None:
        self.runner.run(self.tear_down())
        self.runner.close()

    async def tear_down(self) -> None:
        """Once the log accepts everything and requests end, all are answered and all members expire."""
        self.log.error = ErrorCode.none
        self.log.appended.set()
        for _ in range(20):
            await asyncio.sleep(30)
        assert all(task.done() for task in self.sent)
        assert all(figures.pending == 0 for figures in self.coordinator.statistics().values())
        assert all(group.state is GroupState.EMPTY for group in self.coordinator._groups)
        await self.hosts.aclose()


TestGroup = GroupMachine.TestCase
TestGroup.settings = settings(stateful_step_count=40)
