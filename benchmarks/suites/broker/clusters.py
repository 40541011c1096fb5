"""Clusters of three brokers, each in a process of its own.

``python -m benchmarks.suites.broker.clusters`` runs librdkafka's mock cluster, which lives in a client that
is not used for anything else.
"""

from __future__ import annotations

import signal
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

EXAMPLE = "examples.broker"
CLUSTERS = {
    EXAMPLE: (EXAMPLE, "--brokers", str(BROKERS), "--port", "0", "--partitions", str(PARTITIONS)),
    "librdkafka's mock cluster": ("benchmarks.suites.broker.clusters",),
}


@dataclass(frozen=True)
class Cluster:
    """A running cluster with the topic, and the address of the leader of its first partition."""

    process_id: int
    client_settings: dict[str, Any]
    leader: tuple[str, int]


@contextmanager
def running(name: str) -> Iterator[Cluster]:
    """A new cluster of that name for a ``with`` block. Raises RuntimeError when it does not start."""
    with started(*CLUSTERS[name]) as (line, process_id):
        # A client logs nothing, as the cluster ends before the client does.
        settings = {
            "bootstrap.servers": line.removeprefix(_ADDRESS),
            "socket.nagle.disable": True,
            "log_level": 0,
        }
        yield Cluster(process_id, settings, _leader(Producer(settings)))


def _leader(client: Producer) -> tuple[str, int]:
    """Creates the topic, and waits until all of its partitions have leaders."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        cluster = client.list_topics(TOPIC, PATIENCE)
        partitions = cluster.topics[TOPIC].partitions
        leaders = {number: cluster.brokers.get(each.leader) for number, each in partitions.items()}
        if len(leaders) == PARTITIONS and all(leaders.values()):
            return leaders[0].host, leaders[0].port
        time.sleep(0.01)
    raise RuntimeError(f"{TOPIC} has no leaders")


def cases(section: str, measure: Callable[[str], Sample]) -> list[Case]:
    """One case for each cluster."""
    return [Case(section, name, partial(measure, name)) for name in CLUSTERS]


def main() -> None:
    """Print the address of a mock cluster, as the example broker does, and serve until terminated."""
    host = Producer({"test.mock.num.brokers": BROKERS, "log_level": LOG_LEVEL})
    found = host.list_topics(timeout=30.0).brokers.values()
    print(f"{_ADDRESS}{','.join(f'{broker.host}:{broker.port}' for broker in found)}", flush=True)
    signal.pause()


if __name__ == "__main__":
    main()
