"""Which files hold messages that have not ended. The other files are removed."""

from __future__ import annotations

import logging

from purgatory.delayed.message import Location, Message
from purgatory.delayed.storage.index import home_of
from purgatory.delayed.threads import Threads

logger = logging.getLogger("purgatory.delayed")


class FileLifetimes:
    """Counts the messages that are due soon and have not ended, by file. A file without messages can go.

    Segments go in their order, because a later segment says how messages of earlier segments have ended.
    """

    def __init__(self, threads: Threads) -> None:
        self._threads = threads
        self._store = threads.store
        self._segments = self._store.segments
        self._slots: dict[int, int] = {}

    def has_slot(self, slot: int) -> bool:
        """Whether the messages of the slot's file are counted."""
        return slot in self._slots

    def add_slot(self, slot: int, messages: int) -> None:
        self._slots[slot] = messages

    def add_message(self, segment: int) -> None:
        self._segments[segment] += 1

    def ended(self, message: Message | Location) -> None:
        """Count a message no longer, because it was delivered, cancelled or set aside."""
        home = home_of(message.position)
        if home:
            self._segments[home] -= 1
        else:
            self._slots[self._store.slots.slot_of(message.due)] -= 1

    async def remove_slots(self) -> None:
        for slot in [slot for slot, messages in self._slots.items() if not messages]:
            try:
                await self._threads.move(self._store.slots.remove, slot)
                del self._slots[slot]
            except OSError as error:
                logger.error("%s: the file of slot %d stays: %s", self._store.path, slot, error)

    async def remove_segments(self) -> None:
        """Remove the oldest segments, as far as they were spread and all that was due soon has ended."""
        # Without the segments whose messages have ended.
        self._segments = +self._segments
        spread = self._store.mover.checkpoint.spread
        try:
            await self._threads.move(self._store.log.remove_oldest, spread, self._segments)
        except OSError as error:
            logger.error("%s: a segment of the log stays: %s", self._store.path, error)
