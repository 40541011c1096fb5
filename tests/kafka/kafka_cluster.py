"""Apache Kafka on this machine: nodes that are broker and controller, each a process of its own."""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final, Self

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from tests.free_ports import reserved_ports

# What `make kafka` brings.
JARS: Final = Path(__file__).parents[2] / "build" / "kafka"
# Seconds until a node has started or stopped. Other work may run beside it.
PATIENCE: Final = 120.0
# Seconds that the nodes get when all of them end. The last two have no quorum that lets them go.
_ENDING: Final = 5.0
_CLUSTER_ID: Final = "MkU3OEVBNTcwNTJENDM2Qk"
# Small heaps, and a start that is fast.
_JAVA: Final = (
    *("java", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"),
    *("-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", f"{JARS}/*"),
)


class KafkaNode:
    """A broker that is a controller, too. Its ports stay the same when it is started again."""

    def __init__(self, node_id: int, directory: Path, settings: Mapping[str, object]) -> None:
        self.id = node_id
        self.address = str(settings["listeners"]).partition(",")[0].partition("://")[2]
        self._log = directory / f"node-{node_id}.log"
        self._configuration = directory / f"node-{node_id}.properties"
        settings = {**settings, "node.id": node_id, "log.dirs": directory / f"node-{node_id}"}
        self._configuration.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        self._process: subprocess.Popen[bytes]

    def __repr__(self) -> str:
        return f"<KafkaNode {self.id} at {self.address}>"

    @property
    def is_running(self) -> bool:
        return self._process.poll() is None

    def format(self) -> None:
        """Begin to prepare the directory, once."""
        options = ("format", "--cluster-id", _CLUSTER_ID, "--config", str(self._configuration))
        self._start("kafka.tools.StorageTool", *options)

    def formatted(self) -> None:
        """Return when `format` is done."""
        if self._process.wait(PATIENCE):
            raise self._failure()

    def start(self) -> None:
        """Begin to start. Call it in the main thread: the node ends when the thread does."""
        self._start("kafka.Kafka", str(self._configuration))

    def ready(self, brokers: int) -> None:
        """Return when the node itself tells clients of so many brokers. Raises RuntimeError if it ends."""
        admin = AdminClient(
            {"bootstrap.servers": self.address, "reconnect.backoff.max.ms": 200, "log_level": 0}
        )
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            with suppress(KafkaException):
                if len(admin.list_topics(timeout=1).brokers) == brokers:
                    return
            if not self.is_running:
                break
            # It tells of fewer brokers: the others are on their way.
            admin.poll(0.1)
        raise self._failure()

    def kill(self) -> None:
        """End the process with SIGKILL."""
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        """Let the node hand over what it leads, and end."""
        self.terminate()
        self._process.wait(PATIENCE)

    def terminate(self) -> None:
        """Begin to stop."""
        self._process.terminate()

    def end(self, deadline: float) -> None:
        """Return when the process has ended, which `terminate` has begun. It is killed at the deadline."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(max(0, deadline - time.monotonic()))
        self.kill()

    def _start(self, *arguments: str) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                # It also ends when pytest is killed, and so cannot end it.
                ["setpriv", "--pdeathsig", "KILL", *_JAVA, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # Ctrl-C reaches pytest alone.
                start_new_session=True,
            )

    def _failure(self) -> RuntimeError:
        return RuntimeError(f"{self!r} is not ready:\n{self._log.read_text()[-2000:]}")


class KafkaCluster:
    """One node or three, on free ports of the loopback interface, with logs in a temporary directory.

    `settings` are added to the properties of each node.
    """

    def __init__(self, directory: Path, first_port: int, count: int, settings: Mapping[str, object]) -> None:
        voters = ",".join(f"{id}@127.0.0.1:{first_port + count + id - 1}" for id in range(1, count + 1))
        self.nodes: dict[int, KafkaNode] = {}
        for id, port in enumerate(range(first_port, first_port + count), start=1):
            self.nodes[id] = KafkaNode(
                id,
                directory,
                {
                    "process.roles": "broker,controller",
                    "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{port + count}",
                    "controller.listener.names": "CONTROLLER",
                    "controller.quorum.voters": voters,
                    "default.replication.factor": count,
                    "offsets.topic.replication.factor": count,
                    "offsets.topic.num.partitions": 3,
                    "transaction.state.log.replication.factor": count,
                    "transaction.state.log.min.isr": min(2, count),
                    "transaction.state.log.num.partitions": 3,
                    "share.coordinator.state.topic.replication.factor": count,
                    "share.coordinator.state.topic.min.isr": min(2, count),
                    "group.initial.rebalance.delay.ms": 0,
                    **settings,
                },
            )

    @classmethod
    @contextmanager
    def running(cls, count: int, **settings: object) -> Iterator[Self]:
        """Start the nodes, and end them with the block. In the name of a setting, `_` stands for `.`."""
        properties = {name.replace("_", "."): value for name, value in settings.items()}
        with ExitStack() as stack:
            directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="purgatory-kafka-")))
            first_port = stack.enter_context(reserved_ports(2 * count))
            cluster = cls(directory, first_port, count, properties)
            for step in (KafkaNode.format, KafkaNode.formatted):
                for node in cluster.nodes.values():
                    step(node)
            stack.callback(cluster._end)
            for node in cluster.nodes.values():
                node.start()
            cluster.ready()
            yield cluster

    def __repr__(self) -> str:
        return f"<KafkaCluster {[*self.nodes.values()]}>"

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(node.address for node in self.nodes.values())

    def ready(self) -> None:
        """Return when each node tells clients of all of them."""
        for node in self.nodes.values():
            node.ready(len(self.nodes))

    def _end(self) -> None:
        for node in self.nodes.values():
            node.terminate()
        deadline = time.monotonic() + _ENDING
        for node in self.nodes.values():
            node.end(deadline)
