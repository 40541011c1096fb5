"""What of a replica outlives its broker."""

from dataclasses import dataclass
from uuid import UUID

from examples.broker.storage.log import PartitionLog


@dataclass(slots=True)
class StoredPartition:
    """A log, and how far it was known to be committed: what a broker finds on its disk when it starts again.

    ``topic_id`` tells a topic from an earlier one of the same name.
    """

    topic_id: UUID
    log: PartitionLog
    high_watermark: int = 0
