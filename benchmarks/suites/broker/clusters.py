"""Clusters of three brokers, each in a process of its own.

    python -m benchmarks.suites.broker.clusters BROKERS

runs librdkafka's mock cluster, which lives in a client that is not used for anything else.
"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from confluent_kafka import Producer

from benchmarks.harness.benchmark import Case, Sample
from benchmarks.harness.processes import started

BROKERS = 3
# Of topics that are created automatically; the mock cluster's default.
PARTITIONS = 4
TOPIC = "benchmark"
# Seconds for a step that should take no time.
PATIENCE = 60.0
# Warnings and worse: not the notice that it is a mock cluster.
LOG_LEVEL = 4
_ADDRESS = "bootstrap.servers="


@dataclass(frozen=True)
class Cluster:
    """A running cluster."""

    bootstrap_servers: str
    process_id: int

    @property
    def client_settings(self) -> dict[str, Any]:
        """The settings of every client. It logs nothing, as the cluster ends before the client does."""
        return {"bootstrap.servers": self.bootstrap_servers, "socket.nagle.disable": True, "log_level": 0}

    def leader(self) -> tuple[str, int]:
        """The address of the leader of the topic's first partition. The topic exists from then on.

        Raises RuntimeError when there is none in time.
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


@contextmanager
def running(name: str) -> Iterator[Cluster]:
    """A new cluster of that name for a ``with`` block. Raises RuntimeError when it does not start."""
    with started(*CLUSTERS[name]) as (line, process_id):
        if not line.startswith(_ADDRESS):
            raise RuntimeError(f"{name} did not start: {line}")
        yield Cluster(line.removeprefix(_ADDRESS), process_id)


EXAMPLE = "examples.broker"
CLUSTERS = {
    EXAMPLE: (EXAMPLE, "--brokers", str(BROKERS), "--port", "0", "--partitions", str(PARTITIONS)),
    "librdkafka's mock cluster": ("benchmarks.suites.broker.clusters", str(BROKERS)),
}


def cases(section: str, measure: Callable[[str], Sample]) -> list[Case]:
    """One case for each cluster."""
    return [Case(section, name, partial(measure, name)) for name in CLUSTERS]


def main(brokers: str) -> None:
    """Print the address of a mock cluster, as the example broker does, and serve until terminated."""
    host = Producer({"test.mock.num.brokers": int(brokers), "log_level": LOG_LEVEL})
    found = host.list_topics(timeout=30.0).brokers.values()
    print(f"{_ADDRESS}{','.join(f'{broker.host}:{broker.port}' for broker in found)}", flush=True)
    signal.pause()


if __name__ == "__main__":
    main(*sys.argv[1:])
