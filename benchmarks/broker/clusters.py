"""What is measured: clusters of three brokers, each in a process of its own."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Producer

from benchmarks.builds import ROOT

BROKERS = 3
# Of topics that are created because somebody asks for them; what the mock cluster has anyway.
PARTITIONS = 4
TOPIC = "benchmark"
# Seconds for whatever should take no time.
PATIENCE = 60.0

_ADDRESS = "bootstrap.servers="


@dataclass(frozen=True)
class Running:
    """A cluster to be asked."""

    bootstrap_servers: str
    process_id: int

    @property
    def client_settings(self) -> dict[str, Any]:
        """Of every client; silent, or it would complain on stderr when the cluster ends before it does."""
        return {"bootstrap.servers": self.bootstrap_servers, "socket.nagle.disable": True, "log_level": 0}

    def leader(self) -> tuple[str, int]:
        """Where the leader of the topic's first partition listens; the topic exists from then on.

        RuntimeError when there is none in time.
        """
        client = Producer(self.client_settings)
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            cluster = client.list_topics(TOPIC, PATIENCE)
            partitions = cluster.topics[TOPIC].partitions
            leaders = [cluster.brokers.get(partition.leader) for partition in partitions.values()]
            if len(leaders) == PARTITIONS and all(leaders):
                leader = cluster.brokers[partitions[0].leader]
                return leader.host, leader.port
            time.sleep(0.01)
        raise RuntimeError(f"{TOPIC} has no leaders")


@dataclass(frozen=True)
class Cluster:
    """How to start one: what it is called, and the module to run, which prints where it listens."""

    name: str
    command: tuple[str, ...]

    @contextmanager
    def running(self) -> Iterator[Running]:
        """For as long as the block lasts. RuntimeError, with what it said, when it does not start."""
        with (
            tempfile.TemporaryFile("w+") as complaints,
            subprocess.Popen(
                [sys.executable, "-m", *self.command],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=complaints,
                text=True,
            ) as process,
        ):
            assert process.stdout is not None
            try:
                line = process.stdout.readline().strip()
                if not line.startswith(_ADDRESS):
                    complaints.seek(0)
                    raise RuntimeError(f"{self.name} did not start:\n{line}\n{complaints.read()}")
                yield Running(line.removeprefix(_ADDRESS), process.pid)
            finally:
                process.terminate()


EXAMPLE = Cluster(
    "examples.broker",
    ("examples.broker", "--brokers", str(BROKERS), "--port", "0", "--partitions", str(PARTITIONS)),
)
MOCK = Cluster("librdkafka's mock cluster", ("benchmarks.broker.mock_cluster", str(BROKERS)))
CLUSTERS = (EXAMPLE, MOCK)
