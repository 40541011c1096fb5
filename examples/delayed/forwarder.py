"""Writes records to Kafka, except cancelled ones, and sets aside what a target does not take."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final

import anyio
from aiokafka.errors import (  # type: ignore[import-untyped]  # has no types
    InvalidTopicError,
    TopicAuthorizationFailedError,
    UnknownTopicOrPartitionError,
)

from examples.delayed.cancellations import Cancellations
from examples.delayed.producer import TOO_LARGE, Producer
from examples.delayed.request import Header, Request
from examples.delayed.statistics import Statistics
from examples.delayed.topics import Topics

# Seconds that a target may take to appear.
_APPEARS: Final = 5.0
# How often the service looks for it meanwhile.
_LOOKS: Final = 50
# Seconds for which the service remembers that a target does not exist. Otherwise, each record for it would
# wait until `_APPEARS` is over, and hold up the others.
_ABSENT: Final = 30.0
# Names that are remembered, at most.
_NAMES: Final = 1_000
# Sending again does not help.
_REFUSALS: Final = (
    InvalidTopicError,
    TopicAuthorizationFailedError,
    UnknownTopicOrPartitionError,
    *TOO_LARGE,
)

logger = logging.getLogger("examples.delayed")


class Forwarder:
    """Sends records with a producer. Each method returns when the record is acknowledged."""

    def __init__(
        self,
        producer: Producer,
        cancellations: Cancellations,
        topics: Topics,
        statistics: Statistics,
        appears: float = _APPEARS,
    ) -> None:
        self.topics = topics
        self.statistics = statistics
        self._producer = producer
        self._cancellations = cancellations
        self._appears = appears
        # Topics that do not exist, and until when that is not asked again.
        self._absent: dict[str, float] = {}

    async def deliver(self, request: Request) -> None:
        """Forward a record that is due, unless it is cancelled. Raises KafkaError when the cluster fails."""
        if await self.is_cancelled(request.id):
            self.statistics.cancelled += 1
        else:
            await self.forward(request)

    async def is_cancelled(self, id: str) -> bool:
        """Whether a cancel of this record was acknowledged before this call. Raises KafkaError."""
        return await self._cancellations.include(id)

    async def forward(self, request: Request) -> None:
        """Send a record to its target. If the target does not take it, send it to the rejected ones.

        Raises KafkaError when the cluster fails.
        """
        if not request.reason:
            try:
                await self._wait_for(request.target)
                await self.send(request.target, request.key, request.value, request.delivered_headers())
            except _REFUSALS as error:
                reason = f"{request.target} does not take it: {type(error).__name__}"
                request = request.refused(reason, self.topics)
            else:
                self.statistics.forwarded += 1
                return
        logger.warning("record %s is rejected: %s", request.id, request.reason)
        headers = request.delivered_headers()
        try:
            await self.send(self.topics.rejected, request.key, request.value, headers)
        except TOO_LARGE:
            # The reason makes the largest of records too large. Its id says where it is.
            await self.send(self.topics.rejected, request.key, None, headers)
        self.statistics.rejected += 1

    async def send(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        headers: Sequence[Header],
        partition: int | None = None,
    ) -> int:
        """Send a record, and return its offset."""
        offset = await self._producer.send(topic, key, value, headers, partition)
        self.statistics.sent += 1
        self.statistics.sent_bytes += sum(
            len(name) + len(content or b"") for name, content in [*headers, ("", key), ("", value)]
        )
        return offset

    async def _wait_for(self, topic: str) -> None:
        """Return once the topic exists. Raises UnknownTopicOrPartitionError if it does not appear.

        Only an answer of the cluster says so. An instance that was paused or cut off has none.
        """
        now = anyio.current_time()
        if self._absent.get(topic, now) > now:
            raise UnknownTopicOrPartitionError(topic)
        deadline, is_last = now + self._appears, False
        while not await self._producer.knows(topic):
            if is_last:
                if len(self._absent) >= _NAMES:
                    self._absent.clear()
                self._absent[topic] = anyio.current_time() + _ABSENT
                raise UnknownTopicOrPartitionError(topic)
            await anyio.sleep(self._appears / _LOOKS)
            is_last = anyio.current_time() >= deadline
        self._absent.pop(topic, None)
