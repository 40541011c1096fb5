"""What an instance of the service has done."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Statistics:
    """Counts since the start. Each may be behind the others while a record is under way.

    `read` counts records of the delay topic, each when it was forwarded, stored or written elsewhere.
    `forwarded`, `rejected` and `cancelled` count records. `sent` and `sent_bytes` count all records that this
    instance has written to Kafka, and the bytes of their keys, values and headers. `disk_bytes` were written
    to files. `partitions` are those that this instance forwards from now.
    """

    read: int = 0
    forwarded: int = 0
    rejected: int = 0
    cancelled: int = 0
    sent: int = 0
    sent_bytes: int = 0
    disk_bytes: int = 0
    partitions: int = 0
