"""The limits of the service. Each kind of thing that it keeps for its clients is bounded by one of them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """How much clients may ask for, and how much the service keeps for them.

    With the defaults, all records together take at most 64 MiB, and all sessions a few MiB.

    A client that does not read its answers makes the service hold one answer of up to 256 KiB, and a second
    one if the client has asked for it already, until `client_timeout`: at most 5 GiB if every possible
    connection does so at the same time. Requests that are sent behind a pending poll can take as much, until
    the poll's `wait` is over.

    Raises ValueError when `pending` is not less than `connections`. Each poll occupies a connection, so with
    as many polls as connections no client could get a 503, or append the record that all the polls wait for.
    """

    pending: int = 8_000
    """Polls that may be pending at a time; one more gets a 503. It has to be less than `connections`."""
    wait: float = 25.0
    """The longest wait that a poll may ask for, in seconds. Proxies give up on an answer after 30 or 60."""
    topics: int = 256
    """The number of topics. One more takes the place of an unused one, or gets a 403."""
    topic_timeout: float = 60.0
    """Seconds without a reader and without a record after which a topic counts as unused."""
    record_bytes: int = 16 * 1024
    """The bytes of one record; a longer record gets a 413."""
    log_records: int = 1_000
    """Records that a topic keeps. The oldest are dropped; a request for dropped records gets a 410."""
    log_bytes: int = 256 * 1024
    """Bytes of records that a topic keeps, likewise."""
    answer_records: int = 100
    """Records in one answer."""
    followed: int = 64
    """Topics that one poll may follow; a poll for more gets a 422."""
    sessions: int = 1_000
    """Sessions at a time; the heartbeat that would open one more gets a 503."""
    session_timeout: float = 15.0
    """Seconds without a heartbeat after which a session ends."""
    connections: int = 10_000
    """Open connections; one more is closed at once."""
    client_timeout: float = 10.0
    """Seconds in which a client has to finish sending a request, or to read an answer."""
    head_bytes: int = 32 * 1024
    """Bytes of a request's line and headers; a longer head gets a 431."""
    unanswered: int = 16
    """Requests of one connection that may be unanswered; one more gets a 400 and closes the connection."""

    def __post_init__(self) -> None:
        if self.pending >= self.connections:
            raise ValueError(
                f"{self.pending:,} pending polls would occupy all of the {self.connections:,} connections, "
                "and leave none for other requests"
            )
