"""The way of a follower to its leader, which takes time."""

from __future__ import annotations

from collections.abc import Callable

import anyio

from examples.broker.replication.follower_request import FollowerRequest
from examples.broker.replication.replica_fetcher import Leader, LogOffsets
from examples.broker.replication.requests import Fetched, FetchParams
from examples.broker.topic_partition import TopicPartition


class Link:
    """A leader as a follower reaches it: a fetch arrives ``delay()`` seconds after it was sent."""

    def __init__(self, leader: Leader, delay: Callable[[], float]) -> None:
        self._leader = leader
        self._delay = delay

    def __repr__(self) -> str:
        return f"<Link to {self._leader!r}>"

    async def fetch(self, params: FetchParams, request: FollowerRequest) -> Fetched:
        await anyio.sleep(self._delay())
        return await self._leader.fetch(params, request)

    async def offsets(self, topic_partition: TopicPartition, leader_epoch: int) -> LogOffsets:
        return await self._leader.offsets(topic_partition, leader_epoch)
