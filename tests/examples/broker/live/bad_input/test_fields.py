"""Well-formed requests with impossible values: each is answered with an error of the protocol."""

import struct
from typing import Any

import pytest
from crc32c import crc32c
from kio.schema.alter_configs.v2 import AlterConfigsRequest
from kio.schema.alter_configs.v2.request import AlterableConfig as Replacement
from kio.schema.alter_configs.v2.request import AlterConfigsResource as ReplacingResource
from kio.schema.create_partitions.v3 import CreatePartitionsRequest
from kio.schema.create_partitions.v3.request import CreatePartitionsTopic
from kio.schema.create_topics.v2 import CreateTopicsRequest as CreateTopicsRequestV2
from kio.schema.create_topics.v2.request import CreatableTopic as CreatableTopicV2
from kio.schema.create_topics.v7 import CreateTopicsRequest
from kio.schema.create_topics.v7.request import CreatableTopic
from kio.schema.delete_records.v2 import DeleteRecordsRequest
from kio.schema.delete_records.v2.request import DeleteRecordsPartition, DeleteRecordsTopic
from kio.schema.describe_log_dirs.v4 import DescribeLogDirsRequest
from kio.schema.describe_log_dirs.v4.request import DescribableLogDirTopic
from kio.schema.describe_producers.v0 import DescribeProducersRequest
from kio.schema.describe_producers.v0.request import TopicRequest as ProducersTopic
from kio.schema.describe_topic_partitions.v0 import DescribeTopicPartitionsRequest
from kio.schema.describe_topic_partitions.v0.request import Cursor
from kio.schema.errors import ErrorCode
from kio.schema.incremental_alter_configs.v1 import IncrementalAlterConfigsRequest
from kio.schema.incremental_alter_configs.v1.request import AlterableConfig as Change
from kio.schema.incremental_alter_configs.v1.request import AlterConfigsResource as ChangingResource
from kio.schema.join_group.v5 import JoinGroupRequest as JoinGroupRequestV5
from kio.schema.join_group.v5.request import JoinGroupRequestProtocol as JoinGroupRequestProtocolV5
from kio.schema.list_offsets.v9 import ListOffsetsRequest
from kio.schema.list_offsets.v9.request import ListOffsetsPartition, ListOffsetsTopic
from kio.schema.metadata.v13 import MetadataRequest
from kio.schema.metadata.v13.request import MetadataRequestTopic
from kio.schema.offset_delete.v0 import OffsetDeleteRequest
from kio.schema.offset_delete.v0.request import OffsetDeleteRequestPartition, OffsetDeleteRequestTopic
from kio.schema.types import BrokerId, GroupId, TopicName
from kio.static.primitive import i8, i16, i32, i64

from examples.broker.protocol.apis import CREATE_TOPICS, JOIN_GROUP
from tests.examples.broker.live.bad_input.raw_client import RawClient
from tests.examples.broker.live.bad_input.valid_requests import (
    INT32_MAX,
    INT64_MAX,
    TOPIC,
    fetch_request,
    fetched,
    join_request,
    milliseconds,
    produce_request,
    produced,
)
from tests.examples.broker.live.live_cluster import LiveCluster
from tests.examples.broker.protocol.wire_messages import read_response, request_frame, with_size
from tests.examples.broker.wire_batches import wire_batch

pytestmark = pytest.mark.real_time

BATCH = wire_batch(b"one", b"two", b"three")
LENGTH_AT, MAGIC_AT, CRC_AT, ATTRIBUTES_AT, LAST_DELTA_AT, COUNT_AT = 8, 16, 17, 21, 23, 57
LONGEST_NAME = "x" * (2**15 - 1)


def patched(at: int, form: str, value: int, *, mended: bool = True) -> bytes:
    """Return the batch with another value in one field; ``mended`` corrects its checksum."""
    batch = bytearray(BATCH)
    struct.pack_into(form, batch, at, value)
    if mended:
        struct.pack_into(">I", batch, CRC_AT, crc32c(bytes(batch[ATTRIBUTES_AT:])))
    return bytes(batch)


BAD_BATCHES = {
    "none": (None, ErrorCode.invalid_record),
    "nothing": (b"", ErrorCode.invalid_record),
    "half a header": (BATCH[:30], ErrorCode.invalid_record),
    "cut short": (BATCH[:-1], ErrorCode.invalid_record),
    "a flipped bit": (BATCH[:-1] + bytes([BATCH[-1] ^ 1]), ErrorCode.corrupt_message),
    "another checksum": (patched(CRC_AT, ">I", 0, mended=False), ErrorCode.corrupt_message),
    "a length of nothing": (patched(LENGTH_AT, ">i", 0), ErrorCode.corrupt_message),
    "a negative length": (patched(LENGTH_AT, ">i", -1), ErrorCode.corrupt_message),
    "a length of 2 GiB": (patched(LENGTH_AT, ">i", INT32_MAX), ErrorCode.invalid_record),
    "two batches": (BATCH + BATCH, ErrorCode.invalid_record),
    "format 0": (patched(MAGIC_AT, ">b", 0), ErrorCode.invalid_record),
    "format 1": (patched(MAGIC_AT, ">b", 1), ErrorCode.invalid_record),
    "a format to come": (patched(MAGIC_AT, ">b", 3), ErrorCode.invalid_record),
    "a negative format": (patched(MAGIC_AT, ">b", -1), ErrorCode.invalid_record),
    "no records": (patched(COUNT_AT, ">i", 0), ErrorCode.invalid_record),
    "fewer than nothing": (patched(COUNT_AT, ">i", -3), ErrorCode.invalid_record),
    "another count": (patched(COUNT_AT, ">i", 4), ErrorCode.invalid_record),
    "another last offset": (patched(LAST_DELTA_AT, ">i", INT32_MAX), ErrorCode.invalid_record),
    "an unknown codec": (patched(ATTRIBUTES_AT, ">h", 7), ErrorCode.invalid_record),
    "part of a transaction": (
        patched(ATTRIBUTES_AT, ">h", 16),
        ErrorCode.transactional_id_authorization_failed,
    ),
    "another first offset": (patched(0, ">q", 5), ErrorCode.invalid_record),
}


@pytest.mark.parametrize(("records", "error"), BAD_BATCHES.values(), ids=BAD_BATCHES)
def test_a_bad_batch_is_refused(client: RawClient, records: bytes | None, error: ErrorCode) -> None:
    end = fetched(client).high_watermark
    for acks in (1, -1):
        answer = produced(client, records, acks=acks)
        assert (answer.error_code, answer.base_offset) == (error, -1)
    assert fetched(client).high_watermark == end


def test_a_bad_batch_without_acks_closes_the_connection(client: RawClient) -> None:
    client.send(with_size(request_frame(produce_request(BATCH[:-1], acks=0))))
    assert client.until_closed() == b""


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"acks": 2}, ErrorCode.invalid_required_acks),
        ({"acks": -(2**15)}, ErrorCode.invalid_required_acks),
        ({"partition": -1}, ErrorCode.unknown_topic_or_partition),
        ({"partition": INT32_MAX}, ErrorCode.unknown_topic_or_partition),
        ({"topic": ""}, ErrorCode.unknown_topic_or_partition),
        ({"topic": LONGEST_NAME}, ErrorCode.unknown_topic_or_partition),
        ({"timeout_ms": -1}, ErrorCode.none),
        ({"timeout_ms": INT32_MAX}, ErrorCode.none),
    ],
    ids=lambda value: f"{value!s:.40}",
)
def test_an_absurd_produce_is_answered(client: RawClient, settings: dict[str, Any], error: ErrorCode) -> None:
    assert produced(client, BATCH, **settings).error_code is error


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"partition": -1}, ErrorCode.unknown_topic_or_partition),
        ({"partition": INT32_MAX}, ErrorCode.unknown_topic_or_partition),
        ({"topic": LONGEST_NAME}, ErrorCode.unknown_topic_or_partition),
        ({"offset": -5}, ErrorCode.offset_out_of_range),
        ({"offset": -(2**63)}, ErrorCode.offset_out_of_range),
        ({"offset": INT64_MAX}, ErrorCode.offset_out_of_range),
        ({"leader_epoch": INT32_MAX}, ErrorCode.unknown_leader_epoch),
        ({"leader_epoch": -7}, ErrorCode.none),
        ({"last_fetched_epoch": INT32_MAX}, ErrorCode.offset_out_of_range),
        ({"replica_id": 99}, ErrorCode.not_leader_or_follower),
        ({"replica_id": INT32_MAX, "offset": INT64_MAX}, ErrorCode.offset_out_of_range),
        ({"replica_id": -(2**31)}, ErrorCode.none),
        ({"isolation_level": 127}, ErrorCode.none),
        ({"max_bytes": -1, "partition_max_bytes": -(2**31)}, ErrorCode.none),
        ({"max_wait_ms": -(2**31), "min_bytes": INT32_MAX}, ErrorCode.none),
        ({"min_bytes": INT32_MAX, "max_bytes": 1}, ErrorCode.none),
        ({"min_bytes": -(2**31)}, ErrorCode.none),
    ],
    ids=lambda value: f"{value!s:.40}",
)
def test_an_absurd_fetch_is_answered_at_once(
    client: RawClient, settings: dict[str, Any], error: ErrorCode
) -> None:
    assert produced(client, BATCH).error_code is ErrorCode.none
    assert fetched(client, **{"max_wait_ms": INT32_MAX, **settings}).error_code is error


def test_a_fetch_with_the_largest_limits_can_be_abandoned(
    client: RawClient, shared_cluster: LiveCluster
) -> None:
    request = fetch_request(max_wait_ms=INT32_MAX, min_bytes=INT32_MAX, max_bytes=INT32_MAX)
    client.send(with_size(request_frame(request)))
    shared_cluster.until(lambda cluster: cluster.nodes[1].replicas.fetch_purgatory.statistics().pending)
    client.vanish()


@pytest.mark.parametrize(
    ("timestamp", "error"),
    [
        (-(2**63), ErrorCode.unsupported_version),
        (-100, ErrorCode.unsupported_version),
        (INT64_MAX, ErrorCode.none),
    ],
)
def test_no_offset_is_found_for_an_absurd_time(client: RawClient, timestamp: int, error: ErrorCode) -> None:
    asked = ListOffsetsPartition(partition_index=i32(0), timestamp=i64(timestamp))
    request = ListOffsetsRequest(
        replica_id=BrokerId(-1),
        isolation_level=i8(-1),
        topics=(ListOffsetsTopic(name=TopicName(TOPIC), partitions=(asked,)),),
    )
    answer = client.ask(request).topics[0].partitions[0]
    assert (answer.error_code, answer.offset) == (error, -1)


@pytest.mark.parametrize("offset", [-5, -(2**63), INT64_MAX])
def test_records_are_not_deleted_up_to_an_absurd_offset(client: RawClient, offset: int) -> None:
    wanted = DeleteRecordsPartition(partition_index=i32(0), offset=i64(offset))
    request = DeleteRecordsRequest(
        topics=(DeleteRecordsTopic(name=TopicName(TOPIC), partitions=(wanted,)),),
        timeout=milliseconds(INT32_MAX),
    )
    answer = client.ask(request).topics[0].partitions[0]
    assert (answer.error_code, answer.low_watermark) == (ErrorCode.offset_out_of_range, -1)


@pytest.mark.parametrize(
    ("name", "partitions", "replicas", "error"),
    [
        ("large", INT32_MAX, 1, ErrorCode.policy_violation),
        ("negative", -5, 1, ErrorCode.invalid_partitions),
        ("copies", 1, 2**15 - 1, ErrorCode.invalid_replication_factor),
        ("no-copies", 1, -5, ErrorCode.invalid_replication_factor),
        ("../escape", 1, 1, ErrorCode.invalid_topic_exception),
        (LONGEST_NAME, 1, 1, ErrorCode.invalid_topic_exception),
    ],
    ids=lambda value: f"{value!s:.20}",
)
def test_an_absurd_topic_is_not_created(
    client: RawClient, name: str, partitions: int, replicas: int, error: ErrorCode
) -> None:
    topic = CreatableTopic(
        name=TopicName(name),
        num_partitions=i32(partitions),
        replication_factor=i16(replicas),
        assignments=(),
        configs=(),
    )
    request = CreateTopicsRequest(topics=(topic,), timeout=milliseconds(INT32_MAX))
    assert client.ask(request).topics[0].error_code is error


@pytest.mark.parametrize(
    ("name", "count", "error"),
    [
        (TOPIC, INT32_MAX, ErrorCode.policy_violation),
        (TOPIC, 1, ErrorCode.invalid_partitions),
        (TOPIC, -(2**31), ErrorCode.invalid_partitions),
        (LONGEST_NAME, 2, ErrorCode.unknown_topic_or_partition),
    ],
    ids=lambda value: f"{value!s:.20}",
)
def test_absurd_partitions_are_not_created(
    client: RawClient, name: str, count: int, error: ErrorCode
) -> None:
    topic = CreatePartitionsTopic(name=TopicName(name), count=i32(count), assignments=None)
    request = CreatePartitionsRequest(topics=(topic,), timeout=milliseconds(INT32_MAX), validate_only=False)
    assert client.ask(request).results[0].error_code is error


@pytest.mark.parametrize(
    ("kind", "topic", "setting", "value", "error"),
    [
        (2, TOPIC, "retention.ms", str(2**63), ErrorCode.invalid_config),
        (2, TOPIC, "retention.ms", "9" * (2**15 - 1), ErrorCode.invalid_config),
        (2, TOPIC, LONGEST_NAME, LONGEST_NAME, ErrorCode.invalid_config),
        (2, LONGEST_NAME, "retention.ms", "1", ErrorCode.invalid_topic_exception),
        (-128, TOPIC, "retention.ms", "1", ErrorCode.invalid_request),
    ],
    ids=lambda value: f"{value!s:.20}",
)
def test_an_absurd_setting_is_refused(
    client: RawClient, kind: int, topic: str, setting: str, value: str, error: ErrorCode
) -> None:
    replaced = ReplacingResource(
        resource_type=i8(kind), resource_name=topic, configs=(Replacement(name=setting, value=value),)
    )
    changed = ChangingResource(
        resource_type=i8(kind),
        resource_name=topic,
        configs=(Change(name=setting, config_operation=i8(0), value=value),),
    )
    for request in (
        AlterConfigsRequest(resources=(replaced,), validate_only=False),
        IncrementalAlterConfigsRequest(resources=(changed,), validate_only=False),
    ):
        assert client.ask(request).responses[0].error_code is error


@pytest.mark.parametrize(
    ("topic", "index"), [(TOPIC, -1), (TOPIC, INT32_MAX), ("", 0), (LONGEST_NAME, 0)], ids=str
)
def test_what_does_not_exist_is_described_as_such(client: RawClient, topic: str, index: int) -> None:
    name = TopicName(topic)
    directories = DescribeLogDirsRequest(
        topics=(DescribableLogDirTopic(topic=name, partitions=(i32(index),)),)
    )
    assert client.ask(directories).results[0].topics == ()
    producers = DescribeProducersRequest(topics=(ProducersTopic(name=name, partition_indexes=(i32(index),)),))
    (described,) = client.ask(producers).topics[0].partitions
    assert described.error_code is ErrorCode.unknown_topic_or_partition
    cursor = Cursor(topic_name=name, partition_index=i32(index))
    page = DescribeTopicPartitionsRequest(topics=(), response_partition_limit=i32(-(2**31)), cursor=cursor)
    assert sum(len(found.partitions) for found in client.ask(page).topics) <= 1


@pytest.mark.parametrize("group", ["", "nobody", LONGEST_NAME], ids=lambda group: f"{group!r:.20}")
def test_no_offset_of_a_group_without_offsets_is_deleted(client: RawClient, group: str) -> None:
    partition = OffsetDeleteRequestPartition(partition_index=i32(0))
    topics = (OffsetDeleteRequestTopic(name=TopicName(TOPIC), partitions=(partition,)),)
    answer = client.ask(OffsetDeleteRequest(group_id=GroupId(group), topics=topics))
    expected = ErrorCode.group_id_not_found if group else ErrorCode.invalid_group_id
    assert (answer.error_code, answer.topics) == (expected, ())


@pytest.mark.parametrize("name", ["", "..", "\0", LONGEST_NAME], ids=lambda name: f"{name!r:.20}")
def test_no_topic_is_created_for_an_absurd_name(client: RawClient, name: str) -> None:
    request = MetadataRequest(
        topics=(MetadataRequestTopic(topic_id=None, name=TopicName(name)),),
        allow_auto_topic_creation=True,
        include_topic_authorized_operations=True,
    )
    (answer,) = client.ask(request).topics
    assert answer.error_code is ErrorCode.invalid_topic_exception


@pytest.mark.parametrize(
    ("group", "session_timeout_ms", "error"),
    [
        ("", 1000, ErrorCode.invalid_group_id),
        ("group", 0, ErrorCode.invalid_session_timeout),
        ("group", -1, ErrorCode.invalid_session_timeout),
        ("group", INT32_MAX, ErrorCode.invalid_session_timeout),
    ],
)
def test_an_absurd_member_is_refused(
    client: RawClient, group: str, session_timeout_ms: int, error: ErrorCode
) -> None:
    request = join_request(
        group, session_timeout_ms=session_timeout_ms, rebalance_timeout_ms=INT32_MAX, protocol=LONGEST_NAME
    )
    assert client.ask(request).error_code is error


def test_a_client_with_the_longest_name_gets_a_readable_answer(
    client: RawClient,
) -> None:
    """The member id contains the client's name; before version 6 a string has at most 32,767 bytes."""
    protocol = JoinGroupRequestProtocolV5(name="range", metadata=b"")
    request = JoinGroupRequestV5(
        group_id=GroupId("group"),
        session_timeout=milliseconds(1000),
        rebalance_timeout=milliseconds(1000),
        member_id="",
        protocol_type="consumer",
        protocols=(protocol,),
    )
    client.send(with_size(request_frame(request, client_id=LONGEST_NAME)))
    _, answer = read_response(JOIN_GROUP, 5, with_size(client.frame()))
    assert answer.error_code is ErrorCode.member_id_required


def test_a_string_too_long_for_older_versions_closes_the_connection(client: RawClient) -> None:
    """The broker would have to send the string to clients with older versions."""
    client.send(with_size(request_frame(join_request("g" * 2**15))))
    assert client.until_closed() == b""


def test_an_error_message_about_a_long_name_fits_into_the_response(client: RawClient) -> None:
    topic = CreatableTopicV2(
        name=TopicName(LONGEST_NAME),
        num_partitions=i32(1),
        replication_factor=i16(1),
        assignments=(),
        configs=(),
    )
    request = CreateTopicsRequestV2(topics=(topic,), timeout=milliseconds(0))
    client.send(with_size(request_frame(request)))
    _, response = read_response(CREATE_TOPICS, 2, with_size(client.frame()))
    assert response.topics[0].error_code is ErrorCode.invalid_topic_exception
