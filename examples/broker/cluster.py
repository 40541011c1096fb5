"""Several brokers and their controller in one process, and the faults they can be made to have."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Self

import anyio
from anyio.abc import TaskGroup, TaskStatus

from examples.broker.controller.cluster_defaults import ClusterDefaults
from examples.broker.controller.controller import Controller
from examples.broker.node.node import BrokerConfig, Node
from examples.broker.replication.hosted_partitions import Disk
from purgatory import PurgatoryStatistics


@dataclass(frozen=True, slots=True)
class ClusterConfig:
    """``port`` is the first broker's, the others have the next ones; with 0 each gets any that is free.

    Brokers are numbered from 1.
    """

    brokers: int = 3
    host: str = "127.0.0.1"
    port: int = 9092
    defaults: ClusterDefaults = field(default_factory=ClusterDefaults)
    broker: BrokerConfig = field(default_factory=BrokerConfig)


class Cluster:
    """A fixed controller and numbered brokers, each of which can be stopped, killed, started and paused.

    A fault meant for a broker that is not running is a ValueError, as is starting one that is.
    """

    def __init__(self, config: ClusterConfig, controller: Controller, tasks: TaskGroup) -> None:
        self.controller = controller
        self.nodes: dict[int, Node] = {}
        self._config = config
        self._tasks = tasks
        self._scopes: dict[int, anyio.CancelScope] = {}
        self._gone: dict[int, anyio.Event] = {}
        self._disks: dict[int, Disk] = {broker_id: {} for broker_id in self.broker_ids}
        self._ports = {
            broker_id: config.port and config.port + index for index, broker_id in enumerate(self.broker_ids)
        }

    @classmethod
    @asynccontextmanager
    async def running(cls, config: ClusterConfig) -> AsyncIterator[Self]:
        """All brokers up; when the block ends, each is stopped as ``stop`` does, or killed by an exception.

        OSError, in a group, when a port is taken.
        """
        async with (
            Controller.running(config.defaults) as controller,
            anyio.create_task_group() as tasks,
        ):
            cluster = cls(config, controller, tasks)
            for broker_id in cluster.broker_ids:
                await cluster.start(broker_id)
            yield cluster
            for broker_id in list(cluster.nodes):
                await cluster.stop(broker_id)

    def __repr__(self) -> str:
        return f"<Cluster of brokers {list(self.nodes)} of {list(self.broker_ids)}>"

    @property
    def broker_ids(self) -> range:
        return range(1, self._config.brokers + 1)

    @property
    def bootstrap_servers(self) -> str:
        """Where the brokers that run can be reached, as clients take it."""
        return ",".join(f"{node.host}:{node.port}" for node in self.nodes.values())

    async def start(self, broker_id: int) -> None:
        """Start a broker with what its disk holds, on the port it had."""
        if broker_id not in self.broker_ids or broker_id in self.nodes:
            raise ValueError(f"broker {broker_id} cannot be started: it is not one of the stopped ones")
        node = Node(
            broker_id,
            self._config.host,
            self._ports[broker_id],
            self.controller,
            self._disks[broker_id],
            self._config.broker,
        )
        self._ports[broker_id] = await self._tasks.start(self._run, node)
        self.nodes[broker_id] = node

    async def stop(self, broker_id: int) -> None:
        """Stop a broker in good order: it hands over what it leads, and answers what waits on it."""
        self._running(broker_id).stop()
        await self._gone[broker_id].wait()

    async def kill(self, broker_id: int) -> None:
        """End a broker as SIGKILL would: connections break, and only its logs remain."""
        self._running(broker_id)
        self._scopes[broker_id].cancel()
        await self._gone[broker_id].wait()

    def pause(self, broker_id: int) -> None:
        """Let a broker hang; the controller does not hear of it any more, either."""
        self._running(broker_id).pause()

    def resume(self, broker_id: int) -> None:
        self._running(broker_id).resume()

    def pause_follower(self, broker_id: int) -> None:
        """Let a broker replicate nothing, while it serves what it leads."""
        self._running(broker_id).fetchers.pause()

    def resume_follower(self, broker_id: int) -> None:
        self._running(broker_id).fetchers.resume()

    def statistics(self) -> dict[int, dict[str, PurgatoryStatistics]]:
        """Of every purgatory of each running broker."""
        return {broker_id: node.statistics() for broker_id, node in self.nodes.items()}

    def _running(self, broker_id: int) -> Node:
        if broker_id not in self.nodes:
            raise ValueError(f"broker {broker_id} is not one of the running ones: {sorted(self.nodes)}")
        return self.nodes[broker_id]

    async def _run(self, node: Node, *, task_status: TaskStatus[int]) -> None:
        self._gone[node.broker_id] = anyio.Event()
        try:
            with anyio.CancelScope() as self._scopes[node.broker_id]:
                await node.run(task_status=task_status)
        finally:
            self.nodes.pop(node.broker_id, None)
            self._gone[node.broker_id].set()
