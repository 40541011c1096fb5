"""What clients ask for in vain: transactions, and topics that do not exist."""

from contextlib import closing

import kafka  # type: ignore[import-untyped]  # has no types
import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition

from examples.broker.errors import ErrorCode
from tests.examples.broker.live.clients.client_interface import ConsumerSettings, Refused
from tests.examples.broker.live.clients.confluent_client import Confluent
from tests.examples.broker.live.clients.python_clients import Client
from tests.examples.broker.live.live_cluster import LiveCluster, until

pytestmark = pytest.mark.real_time


def test_a_transactional_producer_is_refused_at_once_and_for_good(
    client: Client, shared_cluster: LiveCluster, caplog: pytest.LogCaptureFixture
) -> None:
    # At its timeout the client would raise another error.
    with pytest.raises(Refused, match="TRANSACTIONAL_ID_AUTHORIZATION_FAILED"):
        client.begin_transactions(shared_cluster.bootstrap_servers, "mine")
    assert "this broker serves no transactions: produce without transactional.id 'mine'" in caplog.text


def test_a_commit_for_a_topic_that_does_not_exist_is_refused(shared_cluster: LiveCluster) -> None:
    settings = {"bootstrap.servers": shared_cluster.bootstrap_servers, "group.id": "refusals"}
    with closing(Consumer(settings)) as consumer:
        with pytest.raises(KafkaException) as refused:
            consumer.commit(offsets=[TopicPartition("never-created", 0, 5)], asynchronous=False)
        assert refused.value.args[0].code() == ErrorCode.unknown_topic_or_partition


def test_a_consumer_that_allows_it_creates_its_topic(shared_cluster: LiveCluster) -> None:
    """By kafka-python. For a subscription, librdkafka 2.16 sends that it does not, whatever is set."""
    servers = shared_cluster.bootstrap_servers
    with closing(kafka.KafkaConsumer("wanted", bootstrap_servers=servers, group_id="refusals")) as consumer:
        until(lambda: consumer.poll(50) or len(consumer.assignment()) == 3)
    assert "wanted" in shared_cluster.look(lambda cluster: cluster.controller.image).topics


def test_a_consumer_that_does_not_allow_it_creates_none(shared_cluster: LiveCluster) -> None:
    settings = ConsumerSettings(group_id="refusals")
    with Confluent().consumer(shared_cluster.bootstrap_servers, settings) as consumer:
        consumer.subscribe("not-wanted")
        with pytest.raises(Refused, match="UNKNOWN_TOPIC_OR_PARTITION"):
            until(lambda: consumer.poll(0.05))
    assert "not-wanted" not in shared_cluster.look(lambda cluster: cluster.controller.image).topics
