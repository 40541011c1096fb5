"""Which files hold messages that have not ended, and the removal of the others."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable

from purgatory.delayed.log import home_of
from purgatory.delayed.message import Location, Message
from purgatory.delayed.store import Store
from purgatory.delayed.threads import Threads

logger = logging.getLogger("purgatory.delayed")


class Retention:
    """Counts the messages that are due soon and have not ended, by file. A file goes with its last one.

    Segments of the log go in their order, because a later one says how messages of earlier ones have ended.
    `segments` has the number of messages that each of them has at the start. `failed` is called when nobody
    knows what is on the disk.
    """

    def __init__(
        self,
        store: Store,
        segments: Counter[int],
        threads: Threads,
        failed: Callable[[BaseException], None],
    ) -> None:
        self._store = store
        self._threads = threads
        self._failed = failed
        self._slots: dict[int, int] = {}
        self._segments = segments
        self._oldest = store.oldest
        # Whether segments are being removed.
        self._removing = False
        # Slots whose files could not be removed.
        self._left_over: list[int] = []
        self._closed = False

    def has_slot(self, slot: int) -> bool:
        """Whether the messages of the slot's file are counted, or the file is being removed."""
        return slot in self._slots

    def add_slot(self, slot: int, messages: int) -> None:
        """Count the messages of a slot's file."""
        self._slots[slot] = messages
        if not messages:
            self._remove_slot(slot)

    def add_message(self, segment: int) -> None:
        """Count a message that stays in the log."""
        self._segments[segment] += 1

    def ended(self, message: Message | Location) -> None:
        """Count a message no longer, because it was delivered, cancelled or set aside."""
        home = home_of(message.position)
        if home:
            self._segments[home] -= 1
            if not self._segments[home]:
                del self._segments[home]
                self.remove_segments()
        else:
            slot = self._store.slots.slot_of(message.due)
            self._slots[slot] -= 1
            if not self._slots[slot]:
                self._remove_slot(slot)

    def remove_left_over(self) -> None:
        """Try again to remove the slot files that could not be removed."""
        left_over, self._left_over = self._left_over, []
        for slot in left_over:
            self._remove_slot(slot)

    def remove_segments(self) -> None:
        """Remove the oldest segments, as far as they were spread and all that was due soon has ended."""
        end = self._oldest
        while end <= self._store.checkpoint and end not in self._segments:
            end += 1
        if self._oldest < end and not self._removing and not self._closed:
            self._removing = True
            removing = self._threads.move(self._store.remove_segments, self._oldest, end)
            removing.add_done_callback(self._segments_removed)

    def close(self) -> None:
        """Remove nothing more."""
        self._closed = True

    def _segments_removed(self, done: asyncio.Future[int]) -> None:
        self._removing = False
        error = done.exception()
        if error is None:
            self._oldest = done.result()
            self.remove_segments()
        elif isinstance(error, OSError):
            # The next turn tries again.
            logger.error("%s: a segment of the log stays: %s", self._store.path, error)
        else:
            self._failed(error)

    def _remove_slot(self, slot: int) -> None:
        def removed(done: asyncio.Future[None]) -> None:
            error = done.exception()
            if error is None:
                del self._slots[slot]
            elif isinstance(error, OSError):
                logger.error("%s: the file of slot %d stays: %s", self._store.path, slot, error)
                self._left_over.append(slot)
            else:
                self._failed(error)

        if not self._closed:
            self._threads.move(self._store.remove_slot, slot).add_done_callback(removed)
