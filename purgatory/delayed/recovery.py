"""The order in which durable operations come back after a restart."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from purgatory.delayed.durable_operation import Record
from purgatory.delayed.message import Receipt
from purgatory.delayed.messages import DelayedMessages
from purgatory.errors import safe_repr

# Overdue operations that are brought back before the loop gets a turn.
_SLICE: Final = 100

logger = logging.getLogger("purgatory.delayed")


class Recovery:
    """Calls `bring_back` for each message that is pending, and for those that are overdue last.

    What cannot be brought back is logged, and stays on the disk. `replaced` has the ids of messages in whose
    place another one came: a crash may leave both.
    """

    def __init__(
        self,
        messages: DelayedMessages,
        clock: Callable[[], float],
        bring_back: Callable[[Receipt, Record], object],
    ) -> None:
        self._messages = messages
        self._clock = clock
        self._bring_back = bring_back
        self.replaced: set[str] = set()

    async def run(self) -> None:
        overdue: list[tuple[Receipt, Record]] = []
        async for receipt, body in self._messages.pending():
            try:
                record = Record.parse(body)
            except Exception as error:
                self._report(error)
                continue
            if record.replaces is not None:
                self.replaced.add(record.replaces)
            if record.deadline <= self._clock():
                overdue.append((receipt, record))
            else:
                self._try(receipt, record)
        for number, (receipt, record) in enumerate(overdue):
            if receipt.id not in self.replaced:
                self._try(receipt, record)
            if number % _SLICE == _SLICE - 1:
                await asyncio.sleep(0)

    def _try(self, receipt: Receipt, record: Record) -> None:
        try:
            self._bring_back(receipt, record)
        except Exception as error:
            self._report(error)

    def _report(self, error: Exception) -> None:
        logger.error(
            "%s: an operation cannot be brought back, and stays there: %s",
            self._messages.path,
            safe_repr(error),
        )
