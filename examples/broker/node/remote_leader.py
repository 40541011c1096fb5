"""The client of Fetch: a leader across the network, as its followers use it."""

from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import cast

from kio.schema.fetch.v12 import FetchRequest, FetchResponse
from kio.schema.fetch.v12.request import FetchPartition, FetchTopic, ForgottenTopic
from kio.schema.fetch.v12.response import PartitionData
from kio.schema.list_offsets.v9 import ListOffsetsRequest, ListOffsetsResponse
from kio.schema.list_offsets.v9.request import ListOffsetsPartition, ListOffsetsTopic
from kio.schema.types import BrokerId, TopicName
from kio.static.primitive import i8, i32, i32Timedelta, i64

from examples.broker.errors import ApiError
from examples.broker.protocol.apis import FETCH, LIST_OFFSETS
from examples.broker.protocol.client import PeerConnection
from examples.broker.replication.follower_request import FetchSessionHandler, FollowerRequest
from examples.broker.replication.replica_fetcher import LogOffsets
from examples.broker.replication.requests import Fetched, Fetches, FetchParams, PartitionFetched
from examples.broker.storage.leader_epochs import EpochEndOffset
from examples.broker.storage.record_batch import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from examples.broker.storage.wire_batch import WireRecordBatch
from examples.broker.topic_partition import TopicPartition, by_topic

_READ_UNCOMMITTED = i8(0)


class RemoteLeader:
    """The ``Leader`` of a follower over a connection. Its methods raise ConnectionError when that fails."""

    def __init__(self, connection: PeerConnection, replica_id: int) -> None:
        self._connection = connection
        self._replica_id = BrokerId(replica_id)
        self._session = FetchSessionHandler()

    def __repr__(self) -> str:
        return f"<RemoteLeader of follower {self._replica_id} over {self._connection!r}>"

    async def fetch(self, params: FetchParams, request: FollowerRequest) -> Fetched:
        """Fetch as a follower, in a fetch session. Raises ConnectionError when the session is lost, too.

        A partition whose records were damaged on the way has the error CORRUPT_MESSAGE.
        """
        changed, forgotten = self._session.next_request(request)
        response: FetchResponse = await self._connection.request(
            FETCH,
            FetchRequest(
                replica_id=BrokerId(params.replica_id),
                max_wait=i32Timedelta.parse(timedelta(seconds=params.max_wait)),
                min_bytes=cast(i32, params.min_bytes),
                max_bytes=cast(i32, params.max_bytes),
                session_id=cast(i32, self._session.session_id),
                session_epoch=cast(i32, self._session.epoch),
                topics=tuple(_topics(changed)),
                forgotten_topics_data=tuple(_forgotten(forgotten)),
            ),
        )
        if response.error_code:
            # The follower opens a new connection, and with it a new session.
            raise ConnectionAbortedError(f"{self!r} refused: {response.error_code.name.upper()}")
        self._session.handle_response(response.session_id)
        return {
            TopicPartition(topic.topic, data.partition_index): _fetched(data)
            for topic in response.responses
            for data in topic.partitions
        }

    async def offsets(self, topic_partition: TopicPartition, leader_epoch: int) -> LogOffsets:
        return LogOffsets(
            await self._offset(topic_partition, leader_epoch, EARLIEST_TIMESTAMP),
            await self._offset(topic_partition, leader_epoch, LATEST_TIMESTAMP),
        )

    async def _offset(self, topic_partition: TopicPartition, leader_epoch: int, timestamp: int) -> int:
        requested = ListOffsetsPartition(
            partition_index=cast(i32, topic_partition.partition),
            current_leader_epoch=cast(i32, leader_epoch),
            timestamp=cast(i64, timestamp),
        )
        response: ListOffsetsResponse = await self._connection.request(
            LIST_OFFSETS,
            ListOffsetsRequest(
                replica_id=self._replica_id,
                isolation_level=_READ_UNCOMMITTED,
                topics=(ListOffsetsTopic(name=TopicName(topic_partition.topic), partitions=(requested,)),),
            ),
        )
        answer = response.topics[0].partitions[0]
        if answer.error_code:
            raise ApiError(answer.error_code, f"offset {timestamp} of {topic_partition}")
        return answer.offset


def _topics(request: Fetches) -> Iterator[FetchTopic]:
    for topic, entries in by_topic(request.items()).items():
        yield FetchTopic(
            topic=TopicName(topic),
            partitions=tuple(
                FetchPartition(
                    partition=cast(i32, index),
                    current_leader_epoch=cast(i32, wanted.current_leader_epoch),
                    fetch_offset=cast(i64, wanted.fetch_offset),
                    last_fetched_epoch=cast(i32, wanted.last_fetched_epoch),
                    log_start_offset=cast(i64, wanted.log_start_offset),
                    partition_max_bytes=cast(i32, wanted.max_bytes),
                )
                for index, wanted in entries
            ),
        )


def _forgotten(topic_partitions: Iterable[TopicPartition]) -> Iterator[ForgottenTopic]:
    for topic, entries in by_topic((entry, None) for entry in topic_partitions).items():
        yield ForgottenTopic(
            topic=TopicName(topic), partitions=tuple(cast(i32, index) for index, _ in entries)
        )


def _fetched(data: PartitionData) -> PartitionFetched:
    try:
        batches = WireRecordBatch.parse_all(data.records or b"")
    except ApiError as error:
        return PartitionFetched(error.code)
    diverging = data.diverging_epoch
    return PartitionFetched(
        data.error_code,
        data.high_watermark,
        data.log_start_offset,
        batches,
        EpochEndOffset(diverging.epoch, diverging.end_offset) if diverging.epoch >= 0 else None,
    )
