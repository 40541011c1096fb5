"""Administration of groups, with the clients that support it."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import kafka.admin  # type: ignore[import-untyped]  # has no types
import pytest
from confluent_kafka import ConsumerGroupState, ConsumerGroupTopicPartitions, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from examples.broker.errors import ErrorCode
from tests.examples.broker.live.clients.confluent_client import Confluent
from tests.examples.broker.live.groups.live_group import PARTITIONS, LiveGroup
from tests.examples.broker.live.groups.member_process import Member
from tests.examples.broker.live.live_cluster import PATIENCE, LiveCluster, until

pytestmark = [pytest.mark.real_time, pytest.mark.parametrize("client", [Confluent()])]


@pytest.fixture
def admin(shared_cluster: LiveCluster) -> AdminClient:
    return AdminClient({"bootstrap.servers": shared_cluster.bootstrap_servers, "log_level": 0})


@pytest.fixture
def kafka_python_admin(shared_cluster: LiveCluster) -> Iterator[Any]:
    with closing(kafka.KafkaAdminClient(bootstrap_servers=shared_cluster.bootstrap_servers)) as admin:
        yield admin


def test_a_group_is_described_with_its_members_and_their_assignments(
    group: LiveGroup, admin: AdminClient
) -> None:
    members = [group.join("ann"), group.join("ben", instance_id="b")]
    seen = group.settle(*members)
    listed = admin.list_consumer_groups(states={ConsumerGroupState.STABLE}).result(PATIENCE)
    assert group.group_id in {entry.group_id for entry in listed.valid}
    described = admin.describe_consumer_groups([group.group_id])[group.group_id].result(PATIENCE)
    assert (described.state, described.partition_assignor) == (ConsumerGroupState.STABLE, "range")
    assert described.coordinator.id == group.coordinator
    assert {
        (
            member.member_id,
            member.client_id,
            member.group_instance_id,
            frozenset((p.topic, p.partition) for p in member.assignment.topic_partitions),
        )
        for member in described.members
    } == {
        (
            seen.member_ids[member.name],
            member.name,
            member.instance_id,
            frozenset((group.topic, partition) for partition in member.partitions),
        )
        for member in members
    }


def committed(group: LiveGroup) -> Member:
    """Return a member that has read and committed three records of each partition."""
    group.produce(3)
    member = group.join("ann")
    group.settle(member)
    group.until_read(member, offsets=[0, 1, 2])
    member.commit()
    return member


def test_offsets_are_altered_and_a_group_is_deleted_only_while_it_is_empty(
    group: LiveGroup, admin: AdminClient
) -> None:
    member = committed(group)
    assert listed(admin, group) == dict.fromkeys(range(PARTITIONS), 3)
    with pytest.raises(KafkaException) as refused:
        alter(admin, group, 1)
    assert refused.value.args[0].code() == ErrorCode.unknown_member_id
    assert deletion(admin, group) == ErrorCode.non_empty_group
    member.close()

    alter(admin, group, 1)
    assert listed(admin, group) == group.offsets() == dict.fromkeys(range(PARTITIONS), 1)
    successor = group.join("ben")
    until(lambda: all(successor.reads_of(partition) == [1, 2] for partition in range(PARTITIONS)))
    successor.close()
    until(lambda: not group.seen().member_ids)
    assert deletion(admin, group) is None
    assert group.snapshot() is None
    assert group.offsets() == {}
    assert deletion(admin, group) == ErrorCode.group_id_not_found


def test_offsets_are_deleted_unless_a_member_subscribes_to_their_topic(
    group: LiveGroup, kafka_python_admin: Any
) -> None:
    member = committed(group)
    partition = kafka.TopicPartition(group.topic, 0)
    subscribed = kafka_python_admin.delete_group_offsets(group.group_id, [partition])
    assert subscribed[partition].errno == ErrorCode.group_subscribed_to_topic
    member.close()
    until(lambda: not group.seen().member_ids)
    deleted = kafka_python_admin.delete_group_offsets(group.group_id, [partition])
    assert deleted[partition].errno == ErrorCode.none
    assert group.offsets() == dict.fromkeys(range(1, PARTITIONS), 3)


def test_static_members_are_removed_by_instance_id_and_leave_an_ordinary_empty_group(
    group: LiveGroup, kafka_python_admin: Any
) -> None:
    gone, left = group.join("ann", instance_id="a"), group.join("ben", instance_id="b")
    before = group.settle(gone, left)
    gone.close()
    # A static member does not leave when it closes.
    assert group.seen().member_ids == before.member_ids
    kafka_python_admin.remove_group_members(
        group.group_id, [kafka.admin.MemberToRemove(group_instance_id="a")]
    )
    assert group.settle(left).generation_id > before.generation_id
    left.close()
    kafka_python_admin.remove_group_members(
        group.group_id, [kafka.admin.MemberToRemove(group_instance_id="b")]
    )
    until(lambda: not group.seen().member_ids)
    offsets = {kafka.TopicPartition(group.topic, 0): kafka.structs.OffsetAndMetadata(7, "by hand", -1)}
    kafka_python_admin.alter_group_offsets(group.group_id, offsets)
    assert kafka_python_admin.list_group_offsets(group.group_id) == {group.group_id: offsets}
    assert kafka_python_admin.delete_groups([group.group_id]) == {group.group_id: "OK"}


def listed(admin: AdminClient, group: LiveGroup) -> dict[int, int]:
    asked = [ConsumerGroupTopicPartitions(group.group_id)]
    found = admin.list_consumer_group_offsets(asked)[group.group_id].result(PATIENCE)
    return {partition.partition: partition.offset for partition in found.topic_partitions}


def alter(admin: AdminClient, group: LiveGroup, offset: int) -> None:
    moved = [TopicPartition(group.topic, partition, offset) for partition in range(PARTITIONS)]
    asked = [ConsumerGroupTopicPartitions(group.group_id, moved)]
    altered = admin.alter_consumer_group_offsets(asked)[group.group_id].result(PATIENCE)
    for partition in altered.topic_partitions:
        if partition.error is not None:
            raise KafkaException(partition.error)


def deletion(admin: AdminClient, group: LiveGroup) -> int | None:
    """Return the error code of the deletion; None without an error."""
    error = admin.delete_consumer_groups([group.group_id])[group.group_id].exception(PATIENCE)
    if error is None:
        return None
    assert isinstance(error, KafkaException)
    code: int = error.args[0].code()
    return code
