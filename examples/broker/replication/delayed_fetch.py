"""The delayed operation of a fetch, which waits for enough bytes."""

from examples.broker.errors import ApiError
from examples.broker.replication.fetch import Fetched, Fetches, FetchParams
from examples.broker.replication.hosted_partitions import HostedPartitions
from purgatory import DelayedOperation


class DelayedFetch(DelayedOperation[Fetched]):
    """Completes once ``min_bytes`` can be read, or at the timeout (kafka.server.DelayedFetch).

    It counts the bytes of each partition from the fetch offset to the offset where the reader must stop, up
    to the partition's own ``max_bytes``. The bytes between two segments are unknown, so a fetch whose end
    lies in another segment is answered at once: on a leader that truncated to an older segment, and on a
    partition that has rolled to a new one. A fetch is answered at once, too, when one of its partitions has
    an error or is in another leader epoch than the reader's. The ``request`` of a session changes while the
    operation waits.
    """

    __slots__ = ("_params", "_partitions", "_request")

    def __init__(self, params: FetchParams, request: Fetches, partitions: HostedPartitions) -> None:
        super().__init__(params.max_wait)
        self._params = params
        self._request = request
        self._partitions = partitions

    def try_complete(self) -> bool:
        from_follower = self._params.from_follower
        accumulated = 0
        for topic_partition, wanted in self._request.items():
            try:
                partition = self._partitions.leader(topic_partition, wanted.current_leader_epoch)
                end = partition.end_offset_metadata(from_follower=from_follower)
                # After a roll, the same offset is the end of one segment and the start of the next. There is
                # nothing to read between them.
                if end.message_offset == wanted.fetch_offset:
                    continue
                start = partition.log.locate(wanted.fetch_offset)
            except ApiError:
                return self.force_complete()
            if not end.on_same_segment(start):
                return self.force_complete()
            if start.message_offset < end.message_offset:
                accumulated += min(end.position_diff(start), wanted.max_bytes)
        return accumulated >= self._params.min_bytes and self.force_complete()

    def on_complete(self) -> Fetched:
        return self._partitions.read(self._params, self._request)
