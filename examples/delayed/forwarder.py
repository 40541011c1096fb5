"""Writes records to Kafka, except cancelled ones, and sets aside what a target does not take."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from typing import Final

import anyio
from aiokafka.errors import (  # type: ignore[import-untyped]  # has no types
    InvalidTopicError,
    TopicAuthorizationFailedError,
    UnknownTopicOrPartitionError,
)

from examples.delayed.cancellations import Cancellations
from examples.delayed.producer import TOO_LARGE, Producer
from examples.delayed.request import ProducerRecord, Request
from examples.delayed.settings import Topics

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
    *(InvalidTopicError, TopicAuthorizationFailedError, UnknownTopicOrPartitionError),
    *TOO_LARGE,
)

logger = logging.getLogger("examples.delayed")


@dataclass(slots=True)
class Statistics:
    """Counts of an instance since its start. Each may be behind the others while a record is under way.

    `forwarded`, `rejected` and `cancelled` count records. `sent` and `sent_bytes` count all records that the
    instance has written to Kafka, and the bytes of their keys, values and headers. `disk_bytes` were written
    to files. `partitions` are those that the instance forwards from now.
    """

    forwarded: int = 0
    rejected: int = 0
    cancelled: int = 0
    sent: int = 0
    sent_bytes: int = 0
    disk_bytes: int = 0
    partitions: int = 0


@dataclass
class Forwarder:
    """Sends records with a producer. Each method returns when the record is acknowledged."""

    producer: Producer
    cancellations: Cancellations
    topics: Topics
    statistics: Statistics
    appears: float = _APPEARS
    # Topics that do not exist, and until when that is not asked again.
    _absent: dict[str, float] = field(default_factory=dict)

    async def deliver(self, request: Request) -> None:
        """Forward a record that is due, unless it is cancelled. Raises KafkaError when the cluster fails."""
        if await self.is_cancelled(request.id):
            self.statistics.cancelled += 1
        else:
            await self.forward(request)

    async def is_cancelled(self, id: str) -> bool:
        """Whether a cancel of this record was acknowledged before this call. Raises KafkaError."""
        return await self.cancellations.include(id)

    async def forward(self, request: Request) -> None:
        """Send a record to its target. If the target does not take it, send it to the rejected ones.

        Raises KafkaError when the cluster fails.
        """
        if not request.reason:
            try:
                await self._wait_for(request.target)
                await self.send(request.delivered())
            except _REFUSALS as error:
                reason = f"{request.target} does not take it: {type(error).__name__}"
                request = request.refused(reason, self.topics)
            else:
                self.statistics.forwarded += 1
                return
        logger.warning("record %s is rejected: %s", request.id, request.reason)
        record = request.delivered()
        try:
            await self.send(record)
        except TOO_LARGE:
            # The reason makes the largest of records too large. Its id says where it is.
            await self.send(replace(record, value=None))
        self.statistics.rejected += 1

    async def send(self, record: ProducerRecord) -> int:
        """Send a record, and return its offset."""
        offset = await self.producer.send(record)
        self.statistics.sent += 1
        fields = [*record.headers, ("", record.key), ("", record.value)]
        self.statistics.sent_bytes += sum(len(name) + len(content or b"") for name, content in fields)
        return offset

    async def _wait_for(self, topic: str) -> None:
        """Return once the topic exists. Raises UnknownTopicOrPartitionError if it does not appear.

        Only an answer of the cluster says so. An instance that was paused or cut off has none.
        """
        now = anyio.current_time()
        if self._absent.get(topic, now) > now:
            raise UnknownTopicOrPartitionError(topic)
        deadline, is_last = now + self.appears, False
        while not await self.producer.knows(topic):
            if is_last:
                if len(self._absent) >= _NAMES:
                    self._absent.clear()
                self._absent[topic] = anyio.current_time() + _ABSENT
                raise UnknownTopicOrPartitionError(topic)
            await anyio.sleep(self.appears / _LOOKS)
            is_last = anyio.current_time() >= deadline
        self._absent.pop(topic, None)
