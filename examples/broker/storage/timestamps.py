"""Timestamps of records, in milliseconds since the epoch, and special timestamps that ask for an offset."""

import time
from dataclasses import dataclass
from typing import Final

NO_TIMESTAMP: Final = -1
# The special timestamps of ListOffsets.
LATEST_TIMESTAMP: Final = -1
EARLIEST_TIMESTAMP: Final = -2
MAX_TIMESTAMP: Final = -3
# KIP-405. This broker has no remote storage, so the first one equals EARLIEST_TIMESTAMP, and nothing has the
# second one.
EARLIEST_LOCAL_TIMESTAMP: Final = -4
LATEST_TIERED_TIMESTAMP: Final = -5


@dataclass(frozen=True, slots=True)
class TimestampAndOffset:
    """A record's offset, its timestamp (-1 if the lookup was not by timestamp) and its leader epoch."""

    timestamp: int
    offset: int
    leader_epoch: int


def wall_time_ms() -> int:
    """Return the time of day, in milliseconds since the epoch."""
    return time.time_ns() // 1_000_000
