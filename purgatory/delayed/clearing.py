"""The messages of operations that have ended, on their way from the disk."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from purgatory.delayed.message import Receipt
from purgatory.delayed.messages import DelayedMessages

# Messages that are cancelled at a time. They share a sync.
_BATCH: Final = 1_000

logger = logging.getLogger("purgatory.delayed")


class Clearing:
    """Cancels messages that are not needed any more, and calls `gone` with the id of each."""

    def __init__(self, messages: DelayedMessages, gone: Callable[[str], object]) -> None:
        self._messages = messages
        self._gone = gone
        self._receipts: deque[Receipt] = deque()
        self._changed = asyncio.Event()
        self._closing = False

    def add(self, receipt: Receipt) -> None:
        self._receipts.append(receipt)
        self._changed.set()

    def close(self) -> None:
        """Let `run` end when it has cancelled what was added so far."""
        self._closing = True
        self._changed.set()

    async def run(self) -> None:
        while self._receipts or not self._closing:
            if self._receipts:
                batch = [self._receipts.popleft() for _ in range(min(len(self._receipts), _BATCH))]
                await asyncio.gather(*map(self._cancel, batch))
            else:
                self._changed.clear()
                await self._changed.wait()

    async def _cancel(self, receipt: Receipt) -> None:
        try:
            if await self._messages.cancel(receipt):
                self._gone(receipt.id)
            # Otherwise it is about to be delivered.
        except Exception as error:
            logger.error(
                "%s: an operation has ended, and comes back after a restart before %s: %s",
                self._messages.path,
                datetime.fromtimestamp(receipt.due, UTC),
                error,
            )
