"""The store that all workers share: records with their offsets, and who is online."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final, Protocol, Self

import anyio

from purgatory.relay import Transport
from purgatory.web import Position

PATIENCE: Final = 5.0
"""Seconds that a request of the store may take."""


@dataclass(frozen=True, slots=True)
class Excerpt:
    """The records of a topic from `offset` on, up to the latest one."""

    topic: str
    log: str
    """The id of the log."""
    offset: int
    records: Collection[bytes]


class StoreUnavailable(Exception):
    """Raised when the store cannot be reached, or refuses a request.

    What was to be changed may have been changed all the same.
    """


@asynccontextmanager
async def turn(reading: anyio.Lock) -> AsyncIterator[None]:
    """One reader at a time, so that no answer replaces a later one.

    Raises StoreUnavailable when it takes more than `PATIENCE` seconds, those before its turn included.
    """
    try:
        with anyio.fail_after(PATIENCE):
            async with reading:
                yield
    except TimeoutError as error:
        raise StoreUnavailable("it does not answer") from error


class Store(Protocol):
    """What the workers share. Used as a context manager, which connects; every call raises StoreUnavailable.

    The limits of topics and of sessions hold for all workers together.
    """

    signals: bool
    """Whether `append` also signals the topic. If not, its caller does that afterwards."""

    def transport(self) -> Transport:
        """The transport of a relay between the users of this store."""
        raise NotImplementedError

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *exception: object) -> None: ...

    async def append(self, topic: str, record: bytes) -> int:
        """Append `record`, drop the oldest ones beyond the limits, and return its offset.

        With as many topics as the limit allows, a new one takes the place of the one that has been unused for
        longest. Raises TooManyTopics when all are used. No topic ever has the offsets of a topic that was
        there before: it begins behind the end of every one that has been dropped.
        """
        raise NotImplementedError

    async def read(self, positions: Mapping[str, Position]) -> Collection[Excerpt]:
        """For each topic, what follows a position. It begins later if records there were dropped.

        When that log is gone, all records of the present one. A topic that is read is used.
        """
        raise NotImplementedError

    async def topics(self) -> Collection[str]:
        """The names of all topics."""
        raise NotImplementedError

    async def online(self) -> Collection[str]:
        """The names whose sessions have not ended."""
        raise NotImplementedError

    async def heartbeat(self, name: str) -> bool:
        """Renew the session of `name`, and return whether it is a new one. Raises PurgatoryFull."""
        raise NotImplementedError

    async def leave(self, name: str) -> bool:
        """End the session of `name`, and return whether there was one."""
        raise NotImplementedError
