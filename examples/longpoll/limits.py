"""What clients may ask of the service. Whatever it keeps for them is bounded by one of these."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """With these defaults records take 64 MiB and sessions a few, whatever clients send."""

    pending: int = 20_000
    """Polls that may wait at a time; the next one is a 503."""
    wait: float = 60.0
    """The longest wait, in seconds, that a poll may ask for."""
    topics: int = 256
    """Topics; a record for one more is a 403."""
    record_bytes: int = 16 * 1024
    """Of one record; a longer one is a 413."""
    log_records: int = 1_000
    """What a topic keeps; the oldest go first, and who asks for them later gets a 410."""
    log_bytes: int = 256 * 1024
    """The same in bytes."""
    answer_records: int = 100
    """Records in one answer."""
    sessions: int = 1_000
    """People who may be online at a time; the next one is a 503."""
    session_timeout: float = 15.0
    """Seconds without a heartbeat after which somebody is offline."""
    connections: int = 10_000
    """Open connections; the next one is closed at once."""
    client_timeout: float = 10.0
    """Seconds in which a client has to send a request it has begun, or to take an answer."""
    head_bytes: int = 32 * 1024
    """Of a request's line and headers; a longer one is a 431."""
