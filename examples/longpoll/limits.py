"""What clients may ask of the service. Whatever it keeps for them is bounded by one of these."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """With these defaults records take 64 MiB and sessions a few, whatever clients send.

    On top of that, clients that do not take their answers hold one of 256 KiB each, and the next one if they
    have asked for it already, until `client_timeout`: 5 GiB if all that may be connected do so at a time.
    What they send behind a poll can be as much, until `wait`.

    Raises ValueError when there may be as many polls as connections. Each poll takes one of its own, so the
    next client could not even be told to come again, nor anybody record what all of them wait for.
    """

    pending: int = 8_000
    """Polls that may wait at a time; the next one is a 503. Fewer than there may be connections."""
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
    unanswered: int = 16
    """Requests of one connection that may wait for their answers; one more closes it with a 400."""

    def __post_init__(self) -> None:
        if self.pending >= self.connections:
            raise ValueError(
                f"{self.pending:,} polls would leave none of {self.connections:,} connections to anybody else"
            )
