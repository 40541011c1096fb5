"""What clients ask for in vain: transactions, and topics that do not exist."""

import warnings
from contextlib import closing

import pytest
from aiokafka import AIOKafkaProducer  # type: ignore[import-untyped]  # has no types
from aiokafka.errors import KafkaError as AiokafkaError  # type: ignore[import-untyped]  # has no types
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from examples.broker.errors import ErrorCode
from tests.examples.broker.live.clients.client_interface import PATIENCE
from tests.examples.broker.live.live_cluster import LiveCluster, until

with warnings.catch_warnings():
    # kafka-python loads its schemas by a function that is deprecated in Python 3.11 and 3.12, not in 3.13.
    warnings.simplefilter("ignore", DeprecationWarning)
    import kafka  # type: ignore[import-untyped]  # has no types

pytestmark = pytest.mark.real_time

SERVES_NO_TRANSACTIONS = "this broker serves no transactions: produce without transactional.id 'mine'"


def test_init_transactions_of_librdkafka_ends_at_once_with_a_fatal_error(
    shared_cluster: LiveCluster, caplog: pytest.LogCaptureFixture
) -> None:
    settings = {"bootstrap.servers": shared_cluster.bootstrap_servers, "transactional.id": "mine"}
    with pytest.raises(KafkaException) as refused:
        Producer(settings).init_transactions(PATIENCE)
    error = refused.value.args[0]
    # At the timeout it would be another error, which is not fatal.
    assert (error.code(), error.fatal()) == (ErrorCode.transactional_id_authorization_failed, True)
    assert SERVES_NO_TRANSACTIONS in caplog.text


async def test_a_transactional_producer_of_aiokafka_does_not_start(
    shared_cluster: LiveCluster, caplog: pytest.LogCaptureFixture
) -> None:
    producer = AIOKafkaProducer(bootstrap_servers=shared_cluster.bootstrap_servers, transactional_id="mine")
    try:
        with pytest.raises(AiokafkaError) as refused:
            await producer.start()
        assert refused.value.errno == ErrorCode.transactional_id_authorization_failed
    finally:
        await producer.stop()
    assert SERVES_NO_TRANSACTIONS in caplog.text


def test_init_transactions_of_kafka_python_ends_with_the_error(
    shared_cluster: LiveCluster, caplog: pytest.LogCaptureFixture
) -> None:
    settings = {"bootstrap_servers": shared_cluster.bootstrap_servers, "transactional_id": "mine"}
    with closing(kafka.KafkaProducer(**settings)) as producer:
        with pytest.raises(kafka.errors.KafkaError) as refused:
            producer.init_transactions()
        assert refused.value.errno == ErrorCode.transactional_id_authorization_failed
    assert SERVES_NO_TRANSACTIONS in caplog.text


def librdkafka_consumer(cluster: LiveCluster) -> Consumer:
    settings = {"bootstrap.servers": cluster.bootstrap_servers, "group.id": "refusals", "log_level": 0}
    return Consumer(settings)


def test_a_commit_for_a_topic_that_does_not_exist_is_refused(shared_cluster: LiveCluster) -> None:
    with closing(librdkafka_consumer(shared_cluster)) as consumer:
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
    with closing(librdkafka_consumer(shared_cluster)) as consumer:
        consumer.subscribe(["not-wanted"])
        message = until(lambda: consumer.poll(0.05))
    error = message.error() if message is not None else None
    assert error is not None
    assert error.code() == ErrorCode.unknown_topic_or_partition
    assert "not-wanted" not in shared_cluster.look(lambda cluster: cluster.controller.image).topics
