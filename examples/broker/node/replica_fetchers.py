"""The followers a broker runs: one per leader it follows, over that leader's own port."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import anyio
from anyio.abc import TaskGroup

from examples.broker.handlers.fetch_client import RemoteLeader
from examples.broker.metadata import BrokerRegistration
from examples.broker.protocol.client import PeerConnection
from examples.broker.replication.follower import Follower
from examples.broker.replication.replica_manager import ReplicaManager
from examples.broker.topic_partition import TopicPartition

# A tenth of Kafka's replica.fetch.backoff.ms: everything here is on one machine.
FETCH_BACKOFF: Final = 0.1

# With the leader epoch of each, since a follower that fetches in an old one is refused.
Assignment = Mapping[BrokerRegistration, frozenset[tuple[TopicPartition, int]]]


@dataclass(frozen=True, slots=True)
class _Fetcher:
    partitions: frozenset[tuple[TopicPartition, int]]
    scope: anyio.CancelScope


class ReplicaFetchers:
    """Starts, stops and restarts them as leaders change (kafka.server.ReplicaFetcherManager).

    A follower in the middle of a long poll is cut short when its partitions change, so that a new partition
    has its replicas at once and not after ``replica.fetch.wait.max.ms``.
    """

    def __init__(self, broker_id: int, replicas: ReplicaManager, tasks: TaskGroup, max_wait: float) -> None:
        self._broker_id = broker_id
        self._replicas = replicas
        self._tasks = tasks
        self._max_wait = max_wait
        self._assignment: Assignment = {}
        self._running: dict[BrokerRegistration, _Fetcher] = {}
        self.paused = False

    def __repr__(self) -> str:
        followed = {leader.broker_id: len(fetcher.partitions) for leader, fetcher in self._running.items()}
        return f"<ReplicaFetchers of broker {self._broker_id} partitions by leader: {followed}>"

    def follow(self, assignment: Assignment) -> None:
        """From now on, fetch these partitions from these leaders, and nothing else."""
        self._assignment = assignment
        if not self.paused:
            self._run(assignment)

    def pause(self) -> None:
        """Fetch nothing: the leaders see followers that fall behind."""
        self.paused = True
        self._run({})

    def resume(self) -> None:
        self.paused = False
        self._run(self._assignment)

    def _run(self, assignment: Assignment) -> None:
        for leader, fetcher in list(self._running.items()):
            if assignment.get(leader) != fetcher.partitions:
                self._running.pop(leader).scope.cancel()
        for leader, partitions in assignment.items():
            if leader not in self._running:
                fetcher = self._running[leader] = _Fetcher(partitions, anyio.CancelScope())
                self._tasks.start_soon(self._fetch_from, leader, fetcher)

    async def _fetch_from(self, leader: BrokerRegistration, fetcher: _Fetcher) -> None:
        topic_partitions = [topic_partition for topic_partition, _ in fetcher.partitions]
        with fetcher.scope:
            while True:
                try:
                    await self._follow_until_disconnected(leader, topic_partitions)
                except OSError:
                    # The leader is gone or not up yet. The controller says when another one leads.
                    await anyio.sleep(FETCH_BACKOFF)

    async def _follow_until_disconnected(
        self, leader: BrokerRegistration, topic_partitions: list[TopicPartition]
    ) -> None:
        client_id = f"broker-{self._broker_id}-fetcher-{leader.broker_id}"
        connection = await PeerConnection.open(leader.host, leader.port, client_id)
        try:
            follower = Follower(
                RemoteLeader(connection, self._broker_id),
                self._replicas.partitions,
                topic_partitions,
                max_wait=self._max_wait,
            )
            await follower.run()
        finally:
            await connection.aclose()
