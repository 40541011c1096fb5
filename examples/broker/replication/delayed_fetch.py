"""The wait of a fetch for enough bytes."""

from collections.abc import Mapping

from examples.broker.errors import ApiError
from examples.broker.replication.fetch import FetchParams, FetchRequest, FetchResponse
from examples.broker.replication.hosted_partitions import HostedPartitions
from examples.broker.storage.segment import LogOffsetMetadata
from examples.broker.topic_partition import TopicPartition
from purgatory import DelayedOperation


class DelayedFetch(DelayedOperation[FetchResponse]):
    """Complete once ``min_bytes`` can be read, or at the timeout (kafka.server.DelayedFetch).

    Bytes are counted from where the fetch begins (``fetch_offsets``) to where its reader may read, each
    partition's up to its own ``max_bytes``. Across segments they are not known, so a fetch there is answered
    at once: on a leader truncated to an older segment, and on a partition that has rolled since. So is one
    with a partition in error, or in another leader epoch than the reader believes.
    """

    __slots__ = ("_fetch_offsets", "_params", "_partitions", "_request")

    def __init__(
        self,
        params: FetchParams,
        request: FetchRequest,
        fetch_offsets: Mapping[TopicPartition, LogOffsetMetadata],
        partitions: HostedPartitions,
    ) -> None:
        super().__init__(params.max_wait)
        self._params = params
        self._request = request
        self._fetch_offsets = fetch_offsets
        self._partitions = partitions

    def try_complete(self) -> bool:
        from_follower = self._params.from_follower
        accumulated = 0
        for topic_partition, fetch_offset in self._fetch_offsets.items():
            try:
                end = self._partitions.leader(
                    topic_partition, self._request[topic_partition].current_leader_epoch
                ).end_offset_metadata(from_follower=from_follower)
            except ApiError:
                return self.force_complete()
            # Just rolled: the same offset may lie at the end of one segment and at the start of the next, and
            # then there is nothing to read across the border.
            if end.message_offset == fetch_offset.message_offset:
                continue
            if not end.on_same_segment(fetch_offset):
                return self.force_complete()
            if fetch_offset.message_offset < end.message_offset:
                available = end.position_diff(fetch_offset)
                accumulated += min(available, self._request[topic_partition].max_bytes)
        return accumulated >= self._params.min_bytes and self.force_complete()

    def on_complete(self) -> FetchResponse:
        return self._partitions.read(self._params, self._request)
