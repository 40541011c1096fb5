"""One broker of the cluster, from the moment it starts to the moment it stops or is killed."""

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

import anyio
from anyio.abc import TaskGroup, TaskStatus

from examples.broker.controller.cluster_admin import ClusterAdmin
from examples.broker.controller.cluster_defaults import OFFSETS_TOPIC
from examples.broker.controller.controller import Controller
from examples.broker.controller.metadata_cache import MetadataCache, TopicsDelta
from examples.broker.group.config import GroupConfig
from examples.broker.group.coordinator import GroupCoordinator
from examples.broker.metadata import BrokerRegistration, MetadataImage
from examples.broker.node.replica_fetchers import Assignment, ReplicaFetchers
from examples.broker.node.replicated_group_log import ReplicatedGroupLog
from examples.broker.node.routes import routes
from examples.broker.protocol.connection import ConnectionLimits
from examples.broker.protocol.gate import Gate
from examples.broker.protocol.server import Server
from examples.broker.replication.hosted_partitions import Disk
from examples.broker.replication.replica_manager import ReplicaManager
from examples.broker.topic_partition import TopicPartition
from purgatory import PurgatoryStatistics

STOP_GRACE: Final = 5.0


@dataclass(frozen=True, slots=True)
class BrokerConfig:
    """Seconds, by Kafka's names and with its defaults."""

    replica_lag_time_max: float = 30.0
    replica_fetch_wait_max: float = 0.5
    broker_heartbeat_interval: float = 2.0
    limits: ConnectionLimits = field(default_factory=ConnectionLimits)
    groups: GroupConfig = field(default_factory=GroupConfig)


class Node:
    """A broker: replicas, group coordinator, its copy of the cluster's metadata, fetchers and a server.

    ``disk`` is what outlives it: killed by cancelling ``run``, a broker loses all else, and the next ``Node``
    with the same disk takes up from there.
    """

    def __init__(
        self, broker_id: int, host: str, port: int, controller: Controller, disk: Disk, config: BrokerConfig
    ) -> None:
        self.broker_id = broker_id
        self.host = host
        self.port = port
        self._controller = controller
        self._disk = disk
        self._config = config
        self._cache = MetadataCache(broker_id)
        # The offsets partitions led here, with the leader epoch in which their groups were read.
        self._coordinated: dict[int, int] = {}
        self._gate = Gate()
        self._stop = anyio.Event()

    def __repr__(self) -> str:
        return f"<Node {self.broker_id} at {self.host}:{self.port}>"

    async def run(self, *, task_status: TaskStatus[int]) -> None:
        """Serve until stopped or cancelled; started, with the port, once clients are served.

        OSError when the port is taken.
        """
        async with anyio.create_task_group() as connections:
            async with (
                ReplicaManager.running(
                    self.broker_id,
                    disk=self._disk,
                    alter_partition=partial(self._controller.alter_partition, self.broker_id),
                    is_alive=self._is_alive,
                    replica_lag_time_max=self._config.replica_lag_time_max,
                ) as self.replicas,
                GroupCoordinator.running(
                    self.broker_id, ReplicatedGroupLog(self.replicas), self._groups_config()
                ) as self.groups,
                ClusterAdmin.running(self._controller, self._cache) as self.admin,
                anyio.create_task_group() as chores,
            ):
                self.fetchers = ReplicaFetchers(
                    self.broker_id, self.replicas, chores, self._config.replica_fetch_wait_max
                )
                server = Server(
                    routes(self.replicas, self.groups, self.admin),
                    host=self.host,
                    port=self.port,
                    gate=self._gate,
                    limits=self._config.limits,
                )
                self.port = await self._listen(server, connections)
                self._controller.register(BrokerRegistration(self.broker_id, self.host, self.port))
                self._apply(self._controller.image)
                for chore in (self._follow_metadata, self._send_heartbeats, self._watch_isr):
                    chores.start_soon(chore)
                task_status.started(self.port)
                await self._stop.wait()
                self._resign()
                chores.cancel_scope.cancel()
            # The purgatories are closed, so all that waited has its answer; here it gets out.
            await server.stop(STOP_GRACE)

    def stop(self) -> None:
        """Hand over what is led here, answer what waits here, and return from ``run``."""
        self._stop.set()

    def pause(self) -> None:
        """Hang, as a process that was sent SIGSTOP: nothing is read, answered, fetched or reported alive.

        Its timeouts run on, but what they lead to is only told when it resumes.
        """
        self._gate.close()
        self.fetchers.pause()

    def resume(self) -> None:
        self._gate.open()
        self.fetchers.resume()

    @property
    def condition(self) -> str:
        return "running" if self._gate.is_open else "paused"

    def statistics(self) -> dict[str, PurgatoryStatistics]:
        """Of each of its purgatories, by name."""
        return {**self.replicas.statistics(), **self.groups.statistics(), **self.admin.statistics()}

    async def _follow_metadata(self) -> None:
        while True:
            await self._controller.image_after(self._cache.image.version)
            await self._gate.passed()
            self._apply(self._controller.image)

    def _apply(self, image: MetadataImage) -> None:
        """Lead and follow as the image says. No await: requests see all of it, or none."""
        delta = self._cache.update(image)
        self.replicas.apply(image, delta.deleted | delta.changed.keys())
        self._coordinate(delta)
        self.fetchers.follow(self._assignment(image))
        self.admin.image_applied(delta)

    def _coordinate(self, delta: TopicsDelta) -> None:
        """Take up the groups of the offsets partitions led from now on, give up those led no more.

        Led again in another epoch, a partition is read again: others may have led it in between.
        """
        for topic_partition in delta.deleted:
            if topic_partition.topic == OFFSETS_TOPIC:
                self._resign_from(topic_partition.partition)
        for topic_partition, state in delta.changed.items():
            index = topic_partition.partition
            if topic_partition.topic != OFFSETS_TOPIC or self._coordinated.get(index) == state.leader_epoch:
                continue
            self._resign_from(index)
            if state.leader == self.broker_id:
                self._coordinated[index] = state.leader_epoch
                self.groups.elected(index)

    def _resign_from(self, index: int) -> None:
        if self._coordinated.pop(index, None) is not None:
            self.groups.resigned(index)

    def _assignment(self, image: MetadataImage) -> Assignment:
        followed: dict[BrokerRegistration, set[tuple[TopicPartition, int]]] = {}
        for topic_partition, state in image.partitions():
            leader = image.brokers.get(state.leader)
            if leader is not None and leader.broker_id != self.broker_id and self.broker_id in state.replicas:
                followed.setdefault(leader, set()).add((topic_partition, state.leader_epoch))
        return {leader: frozenset(partitions) for leader, partitions in followed.items()}

    async def _send_heartbeats(self) -> None:
        while True:
            await anyio.sleep(self._config.broker_heartbeat_interval)
            await self._gate.passed()
            self._controller.heartbeat(self.broker_id)

    async def _watch_isr(self) -> None:
        while True:
            await anyio.sleep(self._config.replica_lag_time_max / 2)
            await self._gate.passed()
            self.replicas.maybe_shrink_isr()

    async def _listen(self, server: Server, connections: TaskGroup) -> int:
        try:
            port: int = await connections.start(server.serve)
        except OSError as error:
            raise OSError(
                error.errno, f"broker {self.broker_id} cannot listen at {self.host}:{self.port}"
            ) from error
        return port

    def _resign(self) -> None:
        """Hand over first, so that what is answered then sends the clients to the right broker."""
        self._gate.open()
        self._controller.fence(self.broker_id)
        self._apply(self._controller.image)
        for index in list(self._coordinated):
            self._resign_from(index)

    def _groups_config(self) -> GroupConfig:
        # The controller makes the topic, so it is the controller that says how many partitions it has.
        return replace(
            self._config.groups,
            offsets_topic_partitions=self._controller.defaults.offsets_topic_num_partitions,
        )

    def _is_alive(self, broker_id: int) -> bool:
        return broker_id in self._cache.image.live_brokers
