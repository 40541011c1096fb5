"""One broker of the cluster, from its start until it stops or is killed."""

import errno
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final

import anyio
from anyio.abc import TaskGroup, TaskStatus

from examples.broker.controller.cluster_admin import ClusterAdmin
from examples.broker.controller.controller import Controller
from examples.broker.controller.metadata_cache import MetadataCache, TopicsDelta
from examples.broker.controller.settings import OFFSETS_TOPIC
from examples.broker.group.coordinator import GroupConfig, GroupCoordinator
from examples.broker.metadata import BrokerRegistration, MetadataImage, address
from examples.broker.node.replica_fetchers import Assignment, ReplicaFetchers
from examples.broker.node.replicated_group_log import ReplicatedGroupLog
from examples.broker.node.routes import routes
from examples.broker.protocol.connection import ConnectionLimits
from examples.broker.protocol.gate import Gate
from examples.broker.protocol.server import Server
from examples.broker.replication.hosted_partitions import HostedPartitions
from examples.broker.replication.replica_manager import ReplicaManager
from examples.broker.storage.replica import Disk
from examples.broker.topic_partition import TopicPartition
from purgatory import PurgatoryStatistics

STOP_GRACE: Final = 5.0

# A broker that listens at all addresses of its machine is reached there by other brokers.
_LOOPBACK: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}


class CannotListen(OSError):
    """Raised when a broker cannot listen at its address. The message says why, and what to do."""


@dataclass(frozen=True, slots=True)
class BrokerConfig:
    """The settings of a broker, with Kafka's names and defaults. Times are in seconds."""

    replica_lag_time_max: float = 30.0
    replica_fetch_wait_max: float = 0.5
    broker_heartbeat_interval: float = 2.0
    log_retention_check_interval: float = 300.0
    limits: ConnectionLimits = field(default_factory=ConnectionLimits)
    groups: GroupConfig = field(default_factory=GroupConfig)


class Node:
    """A broker: replicas, group coordinator, metadata cache, replica fetchers and a server.

    ``disk`` outlives the broker. To kill a broker, cancel ``run``: it loses everything else, and the next
    ``Node`` with the same disk continues from there.
    """

    def __init__(
        self,
        broker_id: int,
        host: str,
        port: int,
        controller: Controller,
        disk: Disk,
        config: BrokerConfig,
        *,
        advertised_host: str | None = None,
    ) -> None:
        self.broker_id = broker_id
        self.host = host
        self.advertised_host = advertised_host or host
        self.port = port
        self._controller = controller
        self._disk = disk
        self._config = config
        self._cache = MetadataCache(broker_id)
        # The offsets partitions that this broker leads, with the leader epoch in which it loaded their
        # groups.
        self._coordinated: dict[int, int] = {}
        self._gate = Gate()
        self._stop = anyio.Event()

    def __repr__(self) -> str:
        return f"<Node {self.broker_id} at {address(self.host, self.port)}>"

    async def run(self, *, task_status: TaskStatus[int]) -> None:
        """Serve until stopped or cancelled. The task status is the port, once the broker serves clients.

        Raises CannotListen.
        """
        config = self._config
        # The controller creates the offsets topic, and so decides how many partitions it has.
        partitions = self._controller.defaults.offsets_topic_num_partitions
        async with anyio.create_task_group() as connections:
            async with (
                ReplicaManager.running(
                    HostedPartitions(
                        self.broker_id,
                        disk=self._disk,
                        alter_partition=partial(self._controller.alter_partition, self.broker_id),
                        is_alive=self._is_alive,
                        replica_lag_time_max=config.replica_lag_time_max,
                    )
                ) as self.replicas,
                GroupCoordinator.running(
                    self.broker_id,
                    group_log := ReplicatedGroupLog(self.replicas, partitions),
                    replace(config.groups, offsets_topic_partitions=partitions),
                ) as self.groups,
                ClusterAdmin.running(self._controller, self._cache) as self.admin,
                anyio.create_task_group() as background,
            ):
                self.fetchers = ReplicaFetchers(
                    self.broker_id, self.replicas, background, config.replica_fetch_wait_max
                )
                self.server = Server(
                    routes(self.replicas, self.groups, self.admin),
                    host=self.host,
                    port=self.port,
                    gate=self._gate,
                    limits=config.limits,
                )
                self.port = await self._listen(self.server, connections)
                self._controller.register(self._registration())
                self._apply(self._controller.image)
                background.start_soon(self._follow_metadata)
                background.start_soon(group_log.run)
                for seconds, action in (
                    (config.broker_heartbeat_interval, partial(self._controller.heartbeat, self.broker_id)),
                    (config.replica_lag_time_max / 2, self.replicas.maybe_shrink_isr),
                    (config.log_retention_check_interval, self.replicas.delete_old_segments),
                ):
                    background.start_soon(self._every, seconds, action)
                task_status.started(self.port)
                await self._stop.wait()
                self._hand_over()
                background.cancel_scope.cancel()
            # The purgatories are closed, so every pending request has its answer. Here the server sends them.
            await self.server.stop(STOP_GRACE)

    def stop(self) -> None:
        """Let other brokers lead, answer the pending requests, and return from ``run``."""
        self._stop.set()

    def pause(self) -> None:
        """Hang, as a process after SIGSTOP: no requests, no responses, no fetches and no heartbeats.

        Timeouts still expire, but their responses are sent when the broker resumes.
        """
        self._gate.close()
        self.fetchers.pause()

    def cut_off(self) -> None:
        """Reach nobody, and be reached by nobody: connections break, and new ones do so at once."""
        self.pause()
        self.server.cut_off()

    def slow_down(self, seconds: float) -> None:
        """Let each request wait this long before it is handled. Its own fetches are as fast as ever."""
        self._gate.delay = seconds

    def resume(self) -> None:
        """End a pause, a cut and slowness."""
        self._gate.delay = 0.0
        self._gate.open()
        self.server.reconnect()
        self.fetchers.resume()

    @property
    def status(self) -> str:
        if self.server.is_cut_off:
            return "cut off"
        if not self._gate.is_open:
            return "paused"
        return "slow" if self._gate.delay else "running"

    def statistics(self) -> dict[str, PurgatoryStatistics]:
        """Return the statistics of each purgatory by name."""
        return {**self.replicas.statistics(), **self.groups.statistics(), **self.admin.statistics()}

    async def _follow_metadata(self) -> None:
        while True:
            await self._controller.image_after(self._cache.image.version)
            await self._gate.passed()
            self._apply(self._controller.image)

    def _apply(self, image: MetadataImage) -> None:
        """Lead and follow as the image says.

        It has no await, so requests see all of an image or none of it.
        """
        delta = self._cache.update(image)
        self.replicas.apply(image, delta.deleted | delta.changed.keys())
        self._coordinate(delta)
        self.fetchers.follow(self._assignment(image))
        self.admin.image_applied(delta)

    def _coordinate(self, delta: TopicsDelta) -> None:
        """Coordinate the groups of the offsets partitions that this broker leads now, and resign from others.

        A partition is loaded again in a new leader epoch, since another broker may have led it in between.
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

    async def _every(self, seconds: float, action: Callable[[], object]) -> None:
        while True:
            await anyio.sleep(seconds)
            await self._gate.passed()
            action()

    async def _listen(self, server: Server, connections: TaskGroup) -> int:
        try:
            port: int = await connections.start(server.serve)
        except OSError as error:
            where = address(self.host, self.port)
            fix = "--port" if error.errno in (errno.EADDRINUSE, errno.EACCES) else "--host"
            raise CannotListen(
                f"broker {self.broker_id} cannot listen at {where}: {error.strerror}; choose another {fix}"
            ) from error
        return port

    def _registration(self) -> BrokerRegistration:
        # Clients may reach this broker by a name that leads nowhere on this machine.
        peer_host = _LOOPBACK.get(self.host, self.host)
        return BrokerRegistration(self.broker_id, self.advertised_host, self.port, peer_host=peer_host)

    def _hand_over(self) -> None:
        """Let other brokers lead before the answers are sent, so that clients turn to the right broker."""
        self._gate.open()
        self._controller.fence(self.broker_id)
        self._apply(self._controller.image)
        for index in list(self._coordinated):
            self._resign_from(index)

    def _is_alive(self, broker_id: int) -> bool:
        return broker_id in self._cache.image.live_brokers
