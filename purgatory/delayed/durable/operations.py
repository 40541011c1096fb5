"""The durable operations of a purgatory, and the messages that bring them back."""

from __future__ import annotations

import asyncio
import inspect
import logging
import os
import time
from collections.abc import Callable, Hashable, Iterable, Mapping
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from purgatory import Purgatory
from purgatory._cancellation import Foreign, uninterrupted
from purgatory._core.engine import release, reserve
from purgatory.delayed import schedule
from purgatory.delayed.delivery import check_function
from purgatory.delayed.durable.operation import DurableOperation, Record
from purgatory.delayed.durable.withdrawals import Withdrawals
from purgatory.delayed.message import Receipt
from purgatory.delayed.messages import DelayedMessages
from purgatory.delayed.storage.disk import Disk
from purgatory.errors import PurgatoryClosed, PurgatoryNotOpen, safe_repr

_Operation = DurableOperation[Any]
Factory = Callable[[bytes, float], _Operation]
_Keys = tuple[Hashable, ...]
D = TypeVar("D", bound=_Operation)

# Overdue operations that are brought back before the loop gets a turn.
_SLICE: Final = 100

logger = logging.getLogger("purgatory.delayed")


class DurableOperations:
    """Operations in `purgatory` that come back after a restart: each has a message in the directory `path`.

    ``async with DurableOperations(purgatory, "directory", {"payment": PaymentDue.restore}) as operations``,
    inside the block of the purgatory. `factories` makes operations again, by their kind: each gets the
    payload, and the seconds until the deadline, which are 0 or less when it has passed. It may choose another
    timeout.

    Entering brings back what is pending. Operations whose deadline has passed come last: they are tried once,
    and expire at once. Leaving withdraws the operations from the purgatory. No hook runs, tasks that await
    one get OperationWithdrawn, and the messages stay for the next time.

    An operation that has ended is gone from the disk soon after. When the process crashes before that, it
    comes back, and its hooks run again. The purgatory ends an operation at its deadline. The message only
    keeps it on the disk, and is due a second later. If the operation is still pending then, because it was
    rescheduled, a new message takes its place. An operation that cannot be brought back stays on the disk. A
    second after its deadline that is tried again, and in the end it goes to the dead letters.

    `messages` is the store, for its statistics and dead letters. `max_payload` is in bytes, with the keys.
    Entering raises as `DelayedMessages` does, and PurgatoryNotOpen when the purgatory is not open. Raises
    TypeError for a factory that is a coroutine function, or cannot be called with payload and timeout.
    """

    def __init__(
        self,
        purgatory: Purgatory,
        path: str | os.PathLike[str],
        factories: Mapping[str, Factory],
        *,
        max_payload: int = 1 << 20,
        name: str = "durable",
        clock: Callable[[], float] = time.time,
        disk: Disk | None = None,
    ) -> None:
        for kind, factory in factories.items():
            check_function(f"the factory of the kind {kind!r}", factory, "payload", "timeout")
            if inspect.iscoroutinefunction(factory):
                raise TypeError(f"the factory of the kind {kind!r} must be a plain `def`, not an `async def`")
        self.purgatory = purgatory
        self.messages = DelayedMessages(
            path, self._deliver, max_payload=max_payload, name=name, clock=clock, disk=disk
        )
        self._factories = dict(factories)
        self._clock = clock
        # By the id of the message.
        self._registered: dict[str, _Operation] = {}
        # The ids of messages in whose place another one came: a crash may leave both.
        self._replaced: set[str] = set()
        self._withdrawals = Withdrawals(purgatory, self.messages, self._registered)
        self._restored = asyncio.Event()
        self._closed = asyncio.Event()

    def __repr__(self) -> str:
        return f"<DurableOperations {str(self.messages.path)!r} of {len(self)}>"

    def __len__(self) -> int:
        """How many operations have a message on the disk."""
        return len(self._registered)

    async def __aenter__(self) -> Self:
        """Open the directory, and bring back what is pending."""
        if not self.purgatory.open:
            raise PurgatoryNotOpen(f"{self.purgatory!r} is not open: enter it before {self!r}")
        await self.messages.__aenter__()
        try:
            self.purgatory.add_observer(self._withdrawals)
            await self._bring_back_all()
        except BaseException as error:
            self._withdraw()
            await self.messages.__aexit__(type(error), error, error.__traceback__)
            raise
        self._restored.set()
        return self

    async def __aexit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._withdraw()
        try:
            await self._withdrawals.finish()
        finally:
            await self.messages.__aexit__(exception_type, exception, traceback)

    def _withdraw(self) -> None:
        """Take all operations out of the purgatory. Their messages stay."""
        self._closed.set()
        self.purgatory.remove_observer(self._withdrawals)
        for operation in self.purgatory.operations():
            if isinstance(operation, DurableOperation) and operation._registry is self._withdrawals:
                operation.cancel()

    async def _bring_back_all(self) -> None:
        """Bring back what is pending. What is overdue comes last."""
        overdue: list[tuple[Receipt, Record]] = []
        async for receipt, body in self.messages.pending():
            try:
                record = Record.parse(body)
            except Exception as error:
                self._report(error)
                continue
            if record.replaces is not None:
                self._replaced.add(record.replaces)
            if record.deadline <= self._clock():
                overdue.append((receipt, record))
            else:
                self._bring_back(receipt, record)
        for number, (receipt, record) in enumerate(overdue):
            if receipt.id not in self._replaced:
                self._bring_back(receipt, record)
            if number % _SLICE == _SLICE - 1:
                await asyncio.sleep(0)

    def _bring_back(self, receipt: Receipt, record: Record) -> None:
        """Bring back an operation with its message, and end the one whose message this one has replaced."""
        try:
            self._restore(receipt.id, record, receipt)
        except Exception as error:
            self._report(error)
            return
        replaced = self._registered.get(record.replaces or "")
        if replaced is not None:
            replaced.cancel()

    def _report(self, error: Exception) -> None:
        words = "%s: an operation cannot be brought back, and stays there: %s"
        logger.error(words, self.messages.path, safe_repr(error))

    def _no_factory(self, kind: str) -> ValueError:
        known = ", ".join(map(repr, self._factories)) or "none"
        return ValueError(f"there is no factory for the kind {kind}; there are: {known}")

    def _restore(self, id: str, record: Record, receipt: Receipt | None = None) -> _Operation:
        """Make an operation again, and let it wait. Raises what the factory raises."""
        if record.kind not in self._factories:
            raise self._no_factory(repr(record.kind))
        name = f"the factory of the kind {record.kind!r}"
        with Foreign(name):
            operation = self._factories[record.kind](record.payload, record.deadline - self._clock())
        if not isinstance(operation, DurableOperation):
            if inspect.iscoroutine(operation):
                operation.close()
            raise TypeError(f"{name} returned {safe_repr(operation)}, which is no DurableOperation")
        self._park(operation, record.keys, receipt)
        self._registered[id] = operation
        return operation

    async def offer(self, operation: D, keys: Iterable[Hashable]) -> D:
        """Try an operation, and let it wait if its condition does not hold, also through a restart.

        Like `Purgatory.try_complete_else_watch`. It returns when the operation is on the disk, or done. When
        its condition holds at once, nothing is written. The keys are str, int, float, bool, None, or tuples
        of these. Costs a sync, which is shared with the other calls that wait.

        Raises as `try_complete_else_watch` does; ValueError when there is no factory for its kind, or the
        payload is too long; TypeError for other keys; OSError when the disk is full, and StoreFailed. After
        these two, and when the call is cancelled, the operation is withdrawn.
        """
        if self._closed.is_set():
            raise PurgatoryClosed(f"{self!r} has been closed")
        if not self._restored.is_set():
            raise PurgatoryNotOpen(f"{self!r} is not open: use `async with`")
        # Nothing is tried in another event loop, or when the store has failed.
        self.messages._opened()
        kind = getattr(operation, "kind", None)
        if kind not in self._factories:
            raise self._no_factory(f"{kind!r} of {safe_repr(operation)}")
        if isinstance(keys, str | bytes):
            raise TypeError(f"keys must be several keys, as in [{keys!r}], not {keys!r}")
        watched = tuple(keys)
        # What cannot be written is refused before anything waits.
        body, due = self._message(operation, watched, operation.timeout)
        self._park(operation, watched)
        if not operation.done:
            storing = asyncio.create_task(self._write(operation, body, due))
            try:
                await uninterrupted(storing)
            except asyncio.CancelledError:
                operation.cancel()
                raise
            except Exception:
                if operation.cancel():
                    raise
        return operation

    def _park(self, operation: _Operation, keys: _Keys, receipt: Receipt | None = None) -> None:
        if operation._registry is not None:
            raise RuntimeError(f"{safe_repr(operation)} was offered before: make a new one for each wait")
        operation._registry, operation._receipt = self._withdrawals, receipt
        try:
            release(operation)
            self.purgatory.try_complete_else_watch(operation, keys)
        except BaseException:
            operation._registry = operation._receipt = None
            reserve(operation)
            raise

    def _message(
        self, operation: _Operation, keys: _Keys, timeout: float | None, replaces: str | None = None
    ) -> tuple[bytes, float]:
        """The message of an operation that has `timeout` seconds left, and when it is due."""
        deadline = self._clock() + (schedule.NEVER if timeout is None else timeout)
        with Foreign(f"{type(operation).__name__}.payload()"):
            payload = operation.payload()
        record = Record(operation.kind, keys, deadline, payload, replaces)
        return record.encoded(), deadline + schedule.GRACE

    async def _write(self, operation: _Operation, body: bytes, due: float) -> None:
        operation._receipt = receipt = await self.messages.schedule(body, at=due)
        self._registered[receipt.id] = operation
        if operation._over:
            self._withdrawals.add(receipt)

    async def _deliver(self, id: str, body: bytes, due: float) -> None:
        """The deadline of an operation has passed a second ago."""
        await self._restored.wait()
        if id in self._replaced:
            return
        operation = self._registered.get(id)
        if operation is None or not operation._over:
            if self._closed.is_set() or self.purgatory.closing:
                await self._closed.wait()
                raise PurgatoryClosed("the operation waits for the next start")
            if operation is None:
                operation = self._restore(id, Record.parse(body))
            if not operation.done:
                # It was rescheduled, or the wall clock was set forward.
                timeout = None
                if operation.deadline is not None:
                    timeout = operation.deadline - asyncio.get_running_loop().time()
                await self._write(operation, *self._message(operation, operation.keys, timeout, replaces=id))
        self._registered.pop(id, None)
