"""The store that all workers share: records with their offsets, and who is online."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, Self

from purgatory.relay import Transport
from purgatory.web import Position

KEPT: Final = 200
"""Records that a topic keeps. The oldest are dropped."""

TOPICS: Final = 100
"""The number of topics. So strangers can store no more than 100 x 200 records of some 8 KiB."""

SESSION_TIMEOUT: Final = 40.0
"""Seconds without a heartbeat after which a session ends.

It is longer than the wait of a poll, so a page may send its heartbeats between its polls.
"""

NOWHERE: Final = Position("none", 0)
"""The position of a client that has seen no record. Ids of logs are hexadecimal."""

PEOPLE_KEY: Final = "/people"
"""The key of those who wait for a change of who is online. The key of a topic is its name."""


@dataclass(frozen=True, slots=True)
class Excerpt:
    """The records of a topic from `offset` on, up to the latest one."""

    log: str
    """The id of the log."""
    offset: int
    records: Sequence[bytes]


class StoreUnavailable(Exception):
    """Raised when the store cannot be reached, or refuses a request.

    What was to be changed may have been changed all the same.
    """


class TooManyTopics(Exception):
    """Raised when a record would create more topics than `TOPICS`."""

    def __init__(self) -> None:
        super().__init__(f"there are {TOPICS} topics already, which is the limit")


class Store(Protocol):
    """What the workers share. Entering it connects. Every call raises StoreUnavailable."""

    signals: bool
    """Whether a change also signals its key. If not, the caller signals it afterwards."""

    def transport(self) -> Transport:
        """The transport of a relay between the users of this store."""
        raise NotImplementedError

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *exception: object) -> None: ...

    async def append(self, topic: str, record: bytes) -> int:
        """Append `record`, drop the oldest ones beyond `KEPT`, and return its offset.

        The first record creates the topic, with a new log. Raises TooManyTopics.
        """
        raise NotImplementedError

    async def read(self, positions: Mapping[str, Position]) -> Mapping[str, Excerpt]:
        """What follows a position in each topic. Topics without such records may be left out.

        The excerpt begins with the oldest record when the position is in another log, or when the records
        there were dropped.
        """
        raise NotImplementedError

    async def online(self) -> Collection[str]:
        """The names whose sessions have not ended."""
        raise NotImplementedError

    async def heartbeat(self, name: str) -> bool:
        """Give the session of `name` its timeout again, and return whether it is a new one."""
        raise NotImplementedError

    async def leave(self, name: str) -> None:
        """End the session of `name`, if there is one."""
        raise NotImplementedError
