"""Well-formed requests with impossible values: each is answered with an error of the protocol."""

from collections.abc import Callable
from typing import Final

import pytest

from examples.broker.protocol.apis import (
    CREATE_TOPICS,
    DELETE_RECORDS,
    FETCH,
    JOIN_GROUP,
    PRODUCE,
    Api,
)
from tests.examples.broker.live.bad_input.raw_client import RawClient, frame_of
from tests.examples.broker.live.bad_input.valid_requests import (
    HEALTHY_TOPIC,
    INT32_MAX,
    INT64_MAX,
    TOPIC,
    fetch_of,
    join_of,
    produce_of,
)
from tests.examples.broker.live.live_cluster import LiveCluster, until
from tests.examples.broker.protocol.plain_messages import Plain
from tests.examples.broker.wire_batches import wire_batch

pytestmark = pytest.mark.real_time

BATCH: Final = wire_batch(b"one", b"two", b"three")
LONGEST: Final = "x" * (2**15 - 1)
NO_SUCH_PARTITION: Final = "unknown_topic_or_partition"
OUT_OF_RANGE: Final = "offset_out_of_range"


def fetch_at(**partition: Plain) -> Plain:
    return fetch_of(max_wait=INT32_MAX, partition=partition)


def topic_of(name: str, partitions: int = 1, replicas: int = 1) -> Plain:
    return {"topics": [{"name": name, "num_partitions": partitions, "replication_factor": replicas}]}


def deletion_of(offset: int) -> Plain:
    partition = {"partition_index": 0, "offset": offset}
    return {"topics": [{"name": TOPIC, "partitions": [partition]}], "timeout": INT32_MAX}


# Each request is answered with one error, or with none.
ABSURD: Final[list[tuple[Api, str | None, list[Plain]]]] = [
    (PRODUCE, "invalid_required_acks", [produce_of(BATCH, acks=acks) for acks in (2, -(2**15))]),
    (PRODUCE, NO_SUCH_PARTITION, [produce_of(BATCH, partition=index) for index in (-1, INT32_MAX)]),
    (PRODUCE, NO_SUCH_PARTITION, [produce_of(BATCH, topic) for topic in ("", LONGEST)]),
    (PRODUCE, "invalid_record", [produce_of(data) for data in (None, b"", BATCH[:30], BATCH[:-1])]),
    (PRODUCE, "corrupt_message", [produce_of(BATCH[:-1] + bytes([BATCH[-1] ^ 1]))]),
    (PRODUCE, None, [produce_of(BATCH, timeout=timeout) for timeout in (-1, INT32_MAX)]),
    (FETCH, NO_SUCH_PARTITION, [fetch_at(partition=-1), fetch_at(partition=INT32_MAX), fetch_of(LONGEST)]),
    (FETCH, OUT_OF_RANGE, [fetch_at(fetch_offset=offset) for offset in (-5, -(2**63), INT64_MAX)]),
    (FETCH, OUT_OF_RANGE, [fetch_at(last_fetched_epoch=INT32_MAX)]),
    (FETCH, "unknown_leader_epoch", [fetch_at(current_leader_epoch=INT32_MAX)]),
    (FETCH, "not_leader_or_follower", [fetch_of(replica_id=99)]),
    (
        FETCH,
        None,
        [
            fetch_at(current_leader_epoch=-7),
            fetch_of(replica_id=-(2**31)),
            fetch_of(isolation_level=127),
            fetch_of(max_bytes=-1, partition={"partition_max_bytes": -(2**31)}),
            fetch_of(max_wait=-(2**31), min_bytes=INT32_MAX),
            fetch_of(max_wait=INT32_MAX, min_bytes=INT32_MAX, max_bytes=1),
            fetch_of(max_wait=INT32_MAX, min_bytes=-(2**31)),
        ],
    ),
    (DELETE_RECORDS, OUT_OF_RANGE, [deletion_of(offset) for offset in (-5, -(2**63), INT64_MAX)]),
    (CREATE_TOPICS, "policy_violation", [topic_of("large", INT32_MAX)]),
    (CREATE_TOPICS, "invalid_partitions", [topic_of("negative", -5)]),
    (CREATE_TOPICS, "invalid_replication_factor", [topic_of("copies", 1, n) for n in (2**15 - 1, -5)]),
    (CREATE_TOPICS, "invalid_topic_exception", [topic_of("../escape"), topic_of(LONGEST)]),
    (JOIN_GROUP, "invalid_group_id", [join_of("")]),
    (JOIN_GROUP, "invalid_session_timeout", [join_of("g", session_timeout=n) for n in (0, -1, INT32_MAX)]),
]


def errors(answer: Plain) -> set[str]:
    """Return the errors of a response and of its parts."""
    if isinstance(answer, list):
        return set().union(*map(errors, answer))
    if not isinstance(answer, dict):
        return set()
    return set().union(*map(errors, answer.values())) | ({answer.get("error_code", "none")} - {"none"})


@pytest.mark.parametrize(
    ("api", "error", "values"),
    [
        pytest.param(api, error, request, id=f"{api.name}-{error}-{index}")
        for index, (api, error, requests) in enumerate(ABSURD)
        for request in requests
    ],
)
def test_an_absurd_request_is_answered(client: RawClient, api: Api, error: str | None, values: Plain) -> None:
    # A fetch waits for no records.
    client.ask(PRODUCE, produce_of(BATCH))
    assert errors(client.ask(api, values)) == ({error} if error else set())


def test_a_bad_batch_without_acks_closes_the_connection(client: RawClient) -> None:
    client.send(frame_of(PRODUCE, produce_of(BATCH[:-1], acks=0)))
    assert client.until_closed() == b""


@pytest.mark.parametrize("leave", [RawClient.go, RawClient.vanish])
def test_a_fetch_with_the_largest_limits_can_be_abandoned(
    client: RawClient, shared_cluster: LiveCluster, leave: Callable[[RawClient], None]
) -> None:
    client.send(frame_of(FETCH, fetch_of(max_wait=INT32_MAX, min_bytes=INT32_MAX, max_bytes=INT32_MAX)))
    until(lambda: shared_cluster.waiting(apart_from=HEALTHY_TOPIC))
    leave(client)


def test_a_string_too_long_for_older_versions_closes_the_connection(client: RawClient) -> None:
    """The broker would have to send the string to clients with older versions."""
    client.send(frame_of(JOIN_GROUP, join_of("g" * 2**15)))
    assert client.until_closed() == b""


def test_an_error_message_about_a_long_name_fits_into_the_response(client: RawClient) -> None:
    """Before version 6 a string has at most 32,767 bytes."""
    answer = client.ask(CREATE_TOPICS, topic_of(LONGEST), version=2)
    assert errors(answer) == {"invalid_topic_exception"}
