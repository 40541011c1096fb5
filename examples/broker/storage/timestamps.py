"""Timestamps of records, in milliseconds since the epoch, and those that ask for a certain offset."""

from dataclasses import dataclass
from typing import Final

NO_TIMESTAMP: Final = -1
# What ListOffsets takes in place of a timestamp.
LATEST_TIMESTAMP: Final = -1
EARLIEST_TIMESTAMP: Final = -2
MAX_TIMESTAMP: Final = -3
# KIP-405. Nothing is in remote storage here, so what is earliest is local.
EARLIEST_LOCAL_TIMESTAMP: Final = -4


@dataclass(frozen=True, slots=True)
class TimestampAndOffset:
    """A record's offset, its timestamp (-1 when not looked up by it), and the epoch it was appended in."""

    timestamp: int
    offset: int
    leader_epoch: int
