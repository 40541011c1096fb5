"""A broker's replica fetchers: one for each leader that it follows, connected to that leader's port."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import anyio
from anyio.abc import TaskGroup

from examples.broker.metadata import BrokerRegistration
from examples.broker.node.remote_leader import RemoteLeader
from examples.broker.protocol.client import PeerConnection
from examples.broker.replication.replica_fetcher import ReplicaFetcher
from examples.broker.replication.replica_manager import ReplicaManager
from examples.broker.topic_partition import TopicPartition

# Seconds. A tenth of Kafka's replica.fetch.backoff.ms, since all brokers are on one machine.
FETCH_BACKOFF: Final = 0.1

# The partitions to fetch from each leader, with their leader epochs: a fetch in an old epoch is refused.
Assignment = Mapping[BrokerRegistration, frozenset[tuple[TopicPartition, int]]]


@dataclass(frozen=True, slots=True)
class _Fetcher:
    partitions: frozenset[tuple[TopicPartition, int]]
    scope: anyio.CancelScope


class ReplicaFetchers:
    """Starts and stops the replica fetchers as leaders change (kafka.server.ReplicaFetcherManager).

    A change of its partitions ends a fetcher's long poll, so that a new partition is replicated at once and
    not after ``replica.fetch.wait.max.ms``.
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
        """Fetch these partitions from these leaders from now on, and no others."""
        self._assignment = assignment
        if not self.paused:
            self._run(assignment)

    def pause(self) -> None:
        """Stop fetching, so that the leaders see a follower that lags."""
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
                    # The leader has failed or has not started yet. A new image tells when another one leads.
                    await anyio.sleep(FETCH_BACKOFF)

    async def _follow_until_disconnected(
        self, leader: BrokerRegistration, topic_partitions: list[TopicPartition]
    ) -> None:
        client_id = f"broker-{self._broker_id}-fetcher-{leader.broker_id}"
        connection = await PeerConnection.open(leader.peer_host or leader.host, leader.port, client_id)
        try:
            follower = ReplicaFetcher(
                RemoteLeader(connection, self._broker_id),
                self._replicas.partitions,
                topic_partitions,
                max_wait=self._max_wait,
            )
            await follower.run()
        finally:
            await connection.aclose()
