"""The nodes that the other tests use."""

from __future__ import annotations

import pytest
from confluent_kafka.admin import AdminClient

from tests.kafka.kafka_cluster import KafkaCluster

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]


def brokers(bootstrap_servers: str) -> dict[int, str]:
    """The addresses that a client gets."""
    found = AdminClient({"bootstrap.servers": bootstrap_servers}).list_topics(timeout=30).brokers
    return {id: f"{broker.host}:{broker.port}" for id, broker in found.items()}


def test_one_node_is_a_cluster(kafka_node: KafkaCluster) -> None:
    assert brokers(kafka_node.bootstrap_servers) == {1: kafka_node.bootstrap_servers}


@pytest.mark.parametrize("end", ["kill", "stop"])
def test_a_node_that_ends_comes_back_at_its_address(kafka_cluster: KafkaCluster, end: str) -> None:
    addresses = {id: node.address for id, node in kafka_cluster.nodes.items()}
    node = kafka_cluster.nodes[2]
    getattr(node, end)()
    assert not node.is_running
    node.start()
    kafka_cluster.ready()
    assert brokers(node.address) == addresses


def test_a_node_that_does_not_start_says_why(jars: None) -> None:
    with (
        pytest.raises(RuntimeError, match=r"num\.io\.threads"),
        KafkaCluster.running(1, num_io_threads=-1),
    ):
        pass
