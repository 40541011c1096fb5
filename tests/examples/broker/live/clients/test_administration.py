"""Administration by each client: topics, records, leaders and groups."""

import time
from collections.abc import Iterator
from contextlib import closing

import kafka.admin  # type: ignore[import-untyped]  # has no types
import pytest

from examples.broker.errors import ErrorCode
from examples.broker.metadata import TopicConfig
from examples.broker.replication.partition import Partition
from tests.examples.broker.live.clients.aiokafka_client import AiokafkaAdmin
from tests.examples.broker.live.clients.client_interface import (
    PATIENCE,
    ConsumerSettings,
    ProducerSettings,
    Record,
    Refused,
)
from tests.examples.broker.live.clients.confluent_client import Confluent
from tests.examples.broker.live.clients.kafka_python_client import KafkaPython
from tests.examples.broker.live.clients.live_topic import LiveTopic
from tests.examples.broker.live.clients.python_clients import Admin, Client
from tests.examples.broker.live.live_cluster import LiveCluster, until

pytestmark = pytest.mark.real_time


@pytest.fixture
def admin(client: Client, shared_cluster: LiveCluster) -> Iterator[Admin]:
    with client.admin(shared_cluster.bootstrap_servers) as admin:
        yield admin


def log_start_offset(partition: Partition) -> int:
    return partition.log.log_start_offset


def test_a_topic_is_created_as_requested_and_deleted(
    client: Client, admin: Admin, shared_cluster: LiveCluster
) -> None:
    name = f"ordered-by-{client.name}"
    admin.create_topic(name, 4, 2, {"min.insync.replicas": "2"})
    image = shared_cluster.look(lambda cluster: cluster.controller.image).topics[name]
    assert [len(partition.replicas) for partition in image.partitions] == [2] * 4
    assert image.config == TopicConfig(min_insync_replicas=2)
    assert name in admin.topics()
    assert admin.topic_configs(name)["min.insync.replicas"] == "2"
    admin.delete_topic(name)
    until(lambda: name not in admin.topics())
    assert name not in shared_cluster.look(lambda cluster: cluster.controller.image).topics


def test_an_impossible_topic_is_refused_to_each_client(admin: Admin, topic: LiveTopic) -> None:
    with pytest.raises(Refused, match="TOPIC_ALREADY_EXISTS"):
        admin.create_topic(topic.name, 1, 1, {})
    with pytest.raises(Refused, match="INVALID_REPLICATION_FACTOR"):
        admin.create_topic("nowhere", 1, 4, {})
    with pytest.raises(Refused, match="INVALID_CONFIG"):
        admin.create_topic("misconfigured", 1, 1, {"min.insync.replicas": "none"})
    with pytest.raises(Refused, match="UNKNOWN_TOPIC_OR_PARTITION"):
        admin.delete_topic("never-created")
    assert not {"nowhere", "misconfigured", "never-created"} & admin.topics()


def test_a_topic_gets_more_partitions(admin: Admin, topic: LiveTopic) -> None:
    admin.add_partitions(topic.name, 4)
    image = topic.cluster.look(lambda cluster: cluster.controller.image).topics[topic.name]
    assert [len(partition.in_sync) for partition in image.partitions] == [3] * 4
    with pytest.raises(Refused, match="INVALID_PARTITIONS"):
        admin.add_partitions(topic.name, 4)
    with pytest.raises(Refused, match="UNKNOWN_TOPIC_OR_PARTITION"):
        admin.add_partitions("never-created", 4)


def test_an_altered_configuration_is_shown_and_has_its_effect(
    client: Client, admin: Admin, topic: LiveTopic
) -> None:
    settings = {"max.message.bytes": "200", "compression.type": "lz4"}
    admin.alter_topic_configs(topic.name, settings)
    assert admin.topic_configs(topic.name).items() >= settings.items()
    with client.producer(topic.cluster.bootstrap_servers, ProducerSettings()) as producer:
        with pytest.raises(Refused, match="MESSAGE_TOO_LARGE"):
            producer.send(topic.name, Record(bytes(200)))
        admin.alter_topic_configs(topic.name, {"max.message.bytes": "2000"})
        assert producer.send(topic.name, Record(bytes(200))) == [0]


def test_records_are_deleted_by_the_retention_of_their_topic(
    client: Client, admin: Admin, topic: LiveTopic
) -> None:
    with client.producer(topic.cluster.bootstrap_servers, ProducerSettings()) as producer:
        producer.send(topic.name, *[Record(b"%d" % number) for number in range(5)])
        admin.alter_topic_configs(topic.name, {"retention.ms": "60000"})
        until(lambda: topic.on_each(log_start_offset) == {1: 5, 2: 5, 3: 5})
        assert producer.send(topic.name, Record(b"new", timestamp=time.time_ns() // 1_000_000)) == [5]
    with client.consumer(topic.cluster.bootstrap_servers, ConsumerSettings()) as consumer:
        assert consumer.bounds(topic.name) == (5, 6)


def test_records_have_the_time_of_their_append_where_the_topic_wants_it(
    client: Client, admin: Admin, topic: LiveTopic
) -> None:
    admin.alter_topic_configs(topic.name, {"message.timestamp.type": "LogAppendTime"})
    servers = topic.cluster.bootstrap_servers
    before = time.time_ns() // 1_000_000
    with client.producer(servers, ProducerSettings()) as producer:
        producer.send(topic.name, Record(b"value", timestamp=1_000))
    with client.consumer(servers, ConsumerSettings()) as consumer:
        consumer.read(topic.name, 0)
        taken = consumer.take(PATIENCE)
    assert taken is not None
    assert before <= taken[1].timestamp <= time.time_ns() // 1_000_000


def test_replicas_producers_and_partitions_are_described(topic: LiveTopic) -> None:
    """By kafka-python, which has all these calls."""
    servers = topic.cluster.bootstrap_servers
    partition = kafka.TopicPartition(topic.name, 0)
    with (
        Confluent().producer(servers, ProducerSettings(idempotent=True)) as producer,
        closing(kafka.KafkaAdminClient(bootstrap_servers=servers)) as admin,
    ):
        producer.send(topic.name, Record(b"value"), Record(b"other"))
        size = sum(batch.size_in_bytes for batch in topic.batches())
        for broker in admin.describe_log_dirs({topic.name: [0]}):
            (directory,) = broker["log_dirs"]
            ((described,),) = [entry["partitions"] for entry in directory["topics"]]
            assert described["partition_size"] == size
        (active,) = admin.describe_producers([partition])[partition].active_producers
        assert (active.producer_epoch, active.last_sequence) == (0, 1)
        (found,) = admin.describe_topic_partitions([topic.name])["topics"]
        assert [entry["leader_id"] for entry in found["partitions"]] == [topic.state.leader]
        assert admin.list_partition_reassignments() == {}


def test_the_cluster_is_described(admin: Admin, shared_cluster: LiveCluster) -> None:
    assert admin.brokers() == shared_cluster.look(
        lambda cluster: {(node.broker_id, node.host, node.port) for node in cluster.nodes.values()}
    )


def test_deleted_records_are_gone_from_every_replica(client: Client, admin: Admin, topic: LiveTopic) -> None:
    with client.producer(topic.cluster.bootstrap_servers, ProducerSettings()) as producer:
        producer.send(topic.name, *[Record(b"%d" % number) for number in range(5)])
    assert admin.delete_records(topic.name, 3) == 3
    # The answer means that all replicas have deleted the records, so there is nothing to wait for.
    assert topic.on_each(log_start_offset) == {1: 3, 2: 3, 3: 3}
    # Delete all committed records.
    assert admin.delete_records(topic.name, -1) == 5
    with pytest.raises(Refused) as refused:
        admin.delete_records(topic.name, 6)
    assert refused.value.code is ErrorCode.offset_out_of_range


def test_a_group_is_listed_and_described(
    client: Client, admin: Admin, topic: LiveTopic, shared_cluster: LiveCluster
) -> None:
    group_id = f"readers-with-{client.name}"
    servers = shared_cluster.bootstrap_servers
    with client.producer(servers, ProducerSettings()) as producer:
        producer.send(topic.name, Record(b"value"))
    with client.consumer(servers, ConsumerSettings(group_id=group_id)) as consumer:
        consumer.subscribe(topic.name)
        assert consumer.take(PATIENCE) == (0, Record(b"value"))
        assert group_id in admin.groups()
        assert admin.group(group_id) == ("Stable", 1)
    # A closed consumer has left the group.
    until(lambda: admin.group(group_id) == ("Empty", 0))


@pytest.mark.parametrize("client", [Confluent(), KafkaPython()], ids=lambda client: client.name)
def test_the_preferred_leader_is_elected_again(client: Client, cluster: LiveCluster) -> None:
    topic = LiveTopic.create(cluster, "led")
    preferred = topic.state.leader
    cluster.stop(preferred)
    assert topic.state.leader != preferred
    with client.admin(cluster.bootstrap_servers) as admin:
        assert not isinstance(admin, AiokafkaAdmin)
        with pytest.raises(Refused, match="PREFERRED_LEADER_NOT_AVAILABLE"):
            admin.elect_preferred(topic.name)
        cluster.start(preferred)
        until(lambda: preferred in topic.state.in_sync)
        admin.elect_preferred(topic.name)
        assert topic.state.leader == preferred
