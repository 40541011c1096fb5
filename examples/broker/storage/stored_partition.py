"""The part of a replica that outlives its broker."""

from dataclasses import dataclass
from uuid import UUID

from examples.broker.storage.log import PartitionLog


@dataclass(slots=True)
class StoredPartition:
    """The log and the high watermark that a broker finds on its disk after a restart.

    ``topic_id`` distinguishes a topic from an earlier one of the same name.
    """

    topic_id: UUID
    log: PartitionLog
    high_watermark: int = 0
