"""Takes the messages of operations that have ended from the disk."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Hashable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from purgatory import DelayedOperation, OperationState, Purgatory
from purgatory._cancellation import until_done
from purgatory.delayed.durable.operation import DurableOperation
from purgatory.delayed.message import Receipt
from purgatory.delayed.messages import DelayedMessages
from purgatory.observer import Timing

# Messages that are cancelled at a time. They share a sync.
_BATCH: Final = 1_000

logger = logging.getLogger("purgatory.delayed")


@dataclass(eq=False, repr=False)
class Withdrawals:
    """Observes a purgatory. When an operation has ended that is registered with it, it cancels the message.

    Operations are `registered` by the id of their message. A task cancels messages while there are any.
    """

    purgatory: Purgatory
    messages: DelayedMessages
    registered: dict[str, DurableOperation[Any]]

    def __post_init__(self) -> None:
        self._receipts: deque[Receipt] = deque()
        self._withdrawing: asyncio.Task[None] | None = None

    def operation_finished(self, purgatory: str, operation: DelayedOperation[Any], timing: Timing) -> None:
        if not isinstance(operation, DurableOperation) or operation._registry is not self:
            return
        if self.purgatory.closing and _ends_by_closing(operation, timing):
            # It comes back at the next start.
            return
        operation._over = True
        if operation._receipt is not None:
            self.add(operation._receipt)

    def key_checked(self, purgatory: str, key: Hashable, tried: int, completed: int, at: float) -> None:
        """A check ends nothing by itself."""

    def add(self, receipt: Receipt) -> None:
        self._receipts.append(receipt)
        if self._withdrawing is None or self._withdrawing.done():
            name = f"{self.messages.purgatory.name} withdrawals"
            self._withdrawing = asyncio.create_task(self._withdraw(), name=name)

    async def finish(self) -> None:
        """Return when the messages of all operations that have ended are cancelled, or cannot be."""
        if self._withdrawing is not None and (cancelled := await until_done(self._withdrawing)):
            raise cancelled

    async def _withdraw(self) -> None:
        while self._receipts:
            batch = [self._receipts.popleft() for _ in range(min(len(self._receipts), _BATCH))]
            await asyncio.gather(*map(self._cancel, batch))

    async def _cancel(self, receipt: Receipt) -> None:
        try:
            if await self.messages.cancel(receipt):
                self.registered.pop(receipt.id, None)
            # Otherwise it is about to be delivered.
        except Exception as error:
            words = "%s: an operation has ended, and comes back after a restart before %s: %s"
            logger.error(words, self.messages.path, datetime.fromtimestamp(receipt.due, UTC), error)


def _ends_by_closing(operation: DurableOperation[Any], timing: Timing) -> bool:
    if operation.state is OperationState.EXPIRED:
        return operation.deadline is not None and timing.ended < operation.deadline
    return operation.state is OperationState.CANCELLED
