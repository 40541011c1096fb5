"""Several brokers and their controller in one process, and faults to inject into them."""

import math
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Self

import anyio
from anyio.abc import TaskGroup, TaskStatus

from examples.broker.controller.controller import Controller
from examples.broker.controller.settings import ClusterDefaults
from examples.broker.metadata import address
from examples.broker.node.node import BrokerConfig, Node
from examples.broker.storage.replica import Disk
from purgatory import PurgatoryStatistics


@dataclass(frozen=True, slots=True)
class ClusterConfig:
    """The size, the addresses and the defaults of a cluster. Brokers are numbered from 1.

    The first broker listens at ``port``, the others at the next ones. With port 0, each broker takes any free
    port. Clients are told to connect to ``advertised_host``, or to ``host`` without one.
    """

    brokers: int = 3
    host: str = "127.0.0.1"
    port: int = 9092
    advertised_host: str | None = None
    defaults: ClusterDefaults = field(default_factory=ClusterDefaults)
    broker: BrokerConfig = field(default_factory=BrokerConfig)


class Cluster:
    """A controller and numbered brokers. Each can be stopped, killed, started, paused, cut off or slowed.

    The methods for a fault raise ValueError when the broker is not running; ``start`` raises it when it is.
    """

    def __init__(self, config: ClusterConfig, controller: Controller, tasks: TaskGroup) -> None:
        self.controller = controller
        self.nodes: dict[int, Node] = {}
        self._config = config
        self._tasks = tasks
        self._scopes: dict[int, anyio.CancelScope] = {}
        self._ended: dict[int, anyio.Event] = {}
        self._disks = {broker_id: Disk() for broker_id in self.broker_ids}
        self._ports = {
            broker_id: config.port and config.port + index for index, broker_id in enumerate(self.broker_ids)
        }

    @classmethod
    @asynccontextmanager
    async def running(cls, config: ClusterConfig) -> AsyncIterator[Self]:
        """Start all brokers; stop them when the block ends, or kill them when an exception leaves it.

        Raises CannotListen, in an exception group, when a broker cannot listen at its address.
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
        """The addresses of the running brokers, in the form that clients take."""
        return ",".join(address(node.advertised_host, node.port) for node in self.nodes.values())

    async def start(self, broker_id: int) -> None:
        """Start a broker with the logs on its disk, at its previous port."""
        if broker_id not in self.broker_ids or broker_id in self.nodes:
            raise ValueError(f"broker {broker_id} cannot be started: it runs already or does not exist")
        node = Node(
            broker_id,
            self._config.host,
            self._ports[broker_id],
            self.controller,
            self._disks[broker_id],
            self._config.broker,
            advertised_host=self._config.advertised_host,
        )
        self._ports[broker_id] = await self._tasks.start(self._run, node)
        self.nodes[broker_id] = node

    async def stop(self, broker_id: int) -> None:
        """Stop a broker cleanly: other brokers lead its partitions, and it answers its pending requests."""
        self._running(broker_id).stop()
        await self._ended[broker_id].wait()

    async def kill(self, broker_id: int) -> None:
        """End a broker as SIGKILL does: its connections break, and only its logs remain."""
        self._running(broker_id).server.stop_accepting()
        self._scopes[broker_id].cancel()
        await self._ended[broker_id].wait()

    def pause(self, broker_id: int) -> None:
        """Let a broker hang. It sends no heartbeats to the controller either."""
        self._running(broker_id).pause()

    def cut_off(self, broker_id: int) -> None:
        """Break a broker's connections to clients, to other brokers and to the controller, new ones, too."""
        self._running(broker_id).cut_off()

    def slow_down(self, broker_id: int, seconds: float) -> None:
        """Let a broker wait this long before it handles a request. It replicates from others as before."""
        if not 0 <= seconds < math.inf:
            raise ValueError(f"a request cannot wait {seconds:g} seconds; choose 0 or more")
        self._running(broker_id).slow_down(seconds)

    def resume(self, broker_id: int) -> None:
        """End the faults of a running broker."""
        self._running(broker_id).resume()

    def pause_follower(self, broker_id: int) -> None:
        """Stop a broker's replica fetchers, while it serves the partitions that it leads."""
        self._running(broker_id).fetchers.pause()

    def resume_follower(self, broker_id: int) -> None:
        self._running(broker_id).fetchers.resume()

    def statistics(self) -> dict[int, dict[str, PurgatoryStatistics]]:
        """Return the statistics of every purgatory, by broker and purgatory name."""
        return {broker_id: node.statistics() for broker_id, node in self.nodes.items()}

    def _running(self, broker_id: int) -> Node:
        if broker_id not in self.nodes:
            raise ValueError(f"broker {broker_id} is not running; the running ones are {sorted(self.nodes)}")
        return self.nodes[broker_id]

    async def _run(self, node: Node, *, task_status: TaskStatus[int]) -> None:
        self._ended[node.broker_id] = anyio.Event()
        try:
            with anyio.CancelScope() as self._scopes[node.broker_id]:
                await node.run(task_status=task_status)
        finally:
            self.nodes.pop(node.broker_id, None)
            self._ended[node.broker_id].set()
