"""A consumer group on a running cluster: its members, and its state at the coordinator."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final, Self

from confluent_kafka import Producer

from examples.broker.cluster import Cluster
from examples.broker.controller.new_topic import NewTopic
from examples.broker.controller.settings import OFFSETS_TOPIC
from examples.broker.group.group import Group, GroupState
from examples.broker.group.requests import MemberIdentity
from examples.broker.node.node import Node
from examples.broker.topic_partition import TopicPartition
from tests.examples.broker.live.clients.client_interface import ConsumerSettings
from tests.examples.broker.live.clients.python_clients import Client
from tests.examples.broker.live.groups.member_process import Job, Member
from tests.examples.broker.live.live_cluster import PATIENCE, LiveCluster, until

PARTITIONS: Final = 6
# Seconds. Longer than any wait, so that a member that is gone earlier has not expired.
LONG_SESSION: Final = 4 * PATIENCE
# Short, so that a member soon notices other work.
POLL: Final = 0.02


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The group at one moment, with the id and the end of the session by the members' names.

    Each heartbeat moves the end of a session.
    """

    state: GroupState
    generation_id: int
    member_ids: Mapping[str, str]
    sessions: Mapping[str, float]
    at: float


class LiveGroup:
    """A group that reads a topic of its own. All members use the same client."""

    def __init__(self, cluster: LiveCluster, client: Client, name: str) -> None:
        self.cluster = cluster
        self.client = client
        self.group_id = f"{name}-group"
        self.topic = f"{name}-topic"
        self.members: list[Member] = []

    @classmethod
    @contextmanager
    def running(cls, cluster: LiveCluster, client: Client, name: str) -> Iterator[Self]:
        """Run a group. When the block ends, its members leave, and no operation may stay pending."""
        group = cls(cluster, client, name)
        cluster.create_topics(NewTopic(group.topic, PARTITIONS, 3))
        try:
            yield group
            alive = [member for member in group.members if member.is_alive]
            for member in alive:
                member.begin_to_close()
            for member in alive:
                member.finish_closing()
            group.expel(*[member.instance_id for member in group.members if member.instance_id is not None])
            until(lambda: not cluster.waiting(), explain=cluster.waiting)
        finally:
            for member in group.members:
                if member.is_alive:
                    member.kill()

    def join(self, name: str, *, session_timeout: float = LONG_SESSION, **more: Any) -> Member:
        """Start a member. ``settle`` waits until it is in the group."""
        settings = ConsumerSettings(
            fetch_max_wait=POLL,
            group_id=self.group_id,
            client_id=name,
            session_timeout=session_timeout,
            **more,
        )
        member = Member(Job(self.client, self.cluster.bootstrap_servers, self.topic, settings))
        self.members.append(member)
        return member

    def settle(self, *members: Member) -> Snapshot:
        """Wait until exactly these members are in the group, and have all partitions among them."""
        names = {member.name for member in members}

        def settled() -> Snapshot | None:
            failures = [member for member in members if member.failure]
            assert not failures, failures
            # Every member gets a partition; one without has not got its assignment yet. The members are asked
            # before the group, because a member with an assignment has its final id there.
            held = [member.partitions for member in members]
            seen = self.snapshot()
            if seen is None or seen.state is not GroupState.STABLE or seen.member_ids.keys() != names:
                return None
            every = sorted(chain.from_iterable(held))
            return seen if all(held) and every == list(range(PARTITIONS)) else None

        found = until(settled, explain=lambda: (self.snapshot(), members))
        assert found is not None
        return found

    def snapshot(self) -> Snapshot | None:
        """Return the group's state; None while it has no coordinator or does not exist."""
        return self.cluster.look(self._snapshot)

    def seen(self) -> Snapshot:
        """Return the state of a group that exists and has a coordinator."""
        snapshot = self.snapshot()
        assert snapshot is not None
        return snapshot

    @property
    def coordinator(self) -> int:
        found = self.cluster.look(self._coordinator)
        assert found is not None
        return found.broker_id

    def offsets(self) -> dict[int, int]:
        """Return the committed offsets by partition."""

        def look(cluster: Cluster) -> dict[int, int]:
            coordinator = self._coordinator(cluster)
            assert coordinator is not None
            committed = coordinator.groups.fetch_offsets(self.group_id)
            return {partition.partition: offset.offset for partition, offset in committed.items()}

        return self.cluster.look(look)

    def until_read(self, *members: Member, offsets: list[int]) -> None:
        """Wait until each member has read these offsets, and no others, of each of its partitions."""
        until(
            lambda: all(m.reads_of(partition) == offsets for m in members for partition in m.partitions),
            explain=lambda: members,
        )

    def produce(self, count: int) -> None:
        """Produce this many more records to each partition."""
        producer = Producer({"bootstrap.servers": self.cluster.bootstrap_servers, "log_level": 0})
        for partition in range(PARTITIONS):
            for number in range(count):
                producer.produce(self.topic, b"%d" % number, partition=partition)
        assert producer.flush(PATIENCE) == 0

    def expel(self, *instance_ids: str) -> None:
        """Remove static members, which do not leave by themselves, as an administrator does."""

        def leave(cluster: Cluster) -> None:
            coordinator = self._coordinator(cluster)
            if coordinator is not None:
                identities = [MemberIdentity(group_instance_id=instance_id) for instance_id in instance_ids]
                coordinator.groups.leave(self.group_id, identities)

        self.cluster.look(leave)

    def shared(self) -> list[tuple[int, str, str]]:
        """Return each partition that two members had at once, with the first and the second member."""
        for member in self.members:
            member.listen()
        moves = sorted(
            ((move, member.name) for member in self.members for move in member.moves),
            key=lambda entry: entry[0].at,
        )
        owners: dict[int, str] = {}
        shared: list[tuple[int, str, str]] = []
        for move, name in moves:
            for partition in move.partitions:
                if not move.gained:
                    owners.pop(partition, None)
                elif owners.setdefault(partition, name) != name:
                    shared.append((partition, owners[partition], name))
        return shared

    def _coordinator(self, cluster: Cluster) -> Node | None:
        any_node = next(iter(cluster.nodes.values()))
        partition = TopicPartition(OFFSETS_TOPIC, any_node.groups.partition_for(self.group_id))
        state = cluster.controller.image.partition(partition)
        return None if state is None else cluster.nodes.get(state.leader)

    def _snapshot(self, cluster: Cluster) -> Snapshot | None:
        coordinator = self._coordinator(cluster)
        if coordinator is None:
            return None
        # It may not know yet that it is the coordinator.
        groups: dict[str, Group] = {group.group_id: group for group in coordinator.groups._groups}
        group = groups.get(self.group_id)
        if group is None:
            return None
        members = group.members.values()
        sessions = {
            session.keys[0]: session.deadline or 0.0
            for session in coordinator.groups._purgatories["heartbeat"].operations()
        }
        return Snapshot(
            group.state,
            group.generation_id,
            {member.client_id: member.member_id for member in members},
            {member.client_id: sessions[self.group_id, member.member_id] for member in members},
            time.monotonic(),
        )
