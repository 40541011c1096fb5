"""The configuration of a topic changes while its leader runs: retention, sizes and in-sync replicas."""

from dataclasses import replace

from examples.broker.errors import ErrorCode
from examples.broker.metadata import TopicConfig
from examples.broker.replication.requests import LEADER_ACK, ProduceParams
from examples.broker.storage.record_batch import RecordBatch
from examples.broker.topic_partition import TopicPartition
from tests.examples.broker.leader_broker import CONFIG, Cluster, image_of, soon

OLD = RecordBatch(10, b"x" * 40, max_timestamp=1_000)


async def append(cluster: Cluster, topic_partition: TopicPartition, batches: int) -> None:
    for _ in range(batches):
        await cluster.broker.append(ProduceParams(LEADER_ACK), {topic_partition: OLD})


def configure(cluster: Cluster, topic_partition: TopicPartition, config: TopicConfig) -> None:
    cluster.broker.apply(image_of(cluster.states, config), [topic_partition])


async def test_a_changed_configuration_has_its_effect_at_once(cluster: Cluster) -> None:
    (events,) = cluster.create(0)
    log = cluster.partition(events).log
    configure(cluster, events, replace(CONFIG, max_message_bytes=39))
    refused = await cluster.produce(events, acks=LEADER_ACK)
    assert refused[events].error is ErrorCode.message_too_large
    configure(cluster, events, replace(CONFIG, segment_bytes=40))
    await append(cluster, events, 3)
    assert log.segment_count == 3
    assert cluster.partition(events).log is log


async def test_committed_segments_are_deleted_by_the_retention_of_their_topic(cluster: Cluster) -> None:
    (events,) = cluster.create(0)
    configure(cluster, events, replace(CONFIG, segment_bytes=40))
    await append(cluster, events, 3)
    await cluster.replicate({events: 20})
    cluster.broker.delete_old_segments()
    assert cluster.partition(events).log.log_start_offset == 0
    configure(cluster, events, replace(CONFIG, segment_bytes=40, retention_ms=60_000))
    cluster.broker.delete_old_segments()
    assert cluster.partition(events).log.log_start_offset == 20
    assert (await cluster.follow(1, {events: 30}))[events].log_start_offset == 20


async def test_an_emptied_log_wakes_the_followers_and_commits_in_its_new_segment(cluster: Cluster) -> None:
    (events,) = cluster.create(0)
    configure(cluster, events, replace(CONFIG, retention_ms=60_000))
    await append(cluster, events, 1)
    await cluster.replicate({events: 10})
    polls = [await cluster.start(cluster.follow(replica, {events: 10}, max_wait=30)) for replica in (1, 2)]
    consumer = await cluster.start(cluster.consume({events: 10}))
    cluster.broker.delete_old_segments()
    assert cluster.partition(events).log.log_start_offset == 10
    produced = await cluster.start(cluster.produce(events))
    for poll in polls:
        assert [batch.base_offset for batch in (await soon(poll))[events].batches] == [10]
    await cluster.replicate({events: 20})
    assert (await produced)[events].base_offset == 10
    assert [batch.base_offset for batch in (await soon(consumer))[events].batches] == [10]
