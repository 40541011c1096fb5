"""The durable operations of a purgatory, and the messages that bring them back."""

from __future__ import annotations

import asyncio
import inspect
import logging
import os
import time
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Self, TypeVar

from purgatory import DelayedOperation, OperationState, Purgatory
from purgatory._cancellation import Foreign, uninterrupted
from purgatory._core.engine import release, reserve
from purgatory.delayed.arguments import check_function
from purgatory.delayed.clearing import Clearing
from purgatory.delayed.disk import Disk
from purgatory.delayed.durable_operation import DurableOperation, Record
from purgatory.delayed.message import Receipt
from purgatory.delayed.messages import DelayedMessages
from purgatory.delayed.recovery import Recovery
from purgatory.delayed.schedule import GRACE, NEVER
from purgatory.errors import PurgatoryClosed, PurgatoryNotOpen, safe_repr
from purgatory.observer import Timing

Factory = Callable[[bytes, float], DurableOperation[Any]]
D = TypeVar("D", bound=DurableOperation[Any])


@dataclass(slots=True, eq=False)
class Kept:
    """A durable operation in memory, and the receipt of its message once that is on the disk.

    It is `over` when the operation has ended for good. Then its message is not needed any more.
    """

    owner: DurableOperations
    operation: DurableOperation[Any]
    receipt: Receipt | None = None
    over: bool = False


class DurableOperations:
    """Operations in `purgatory` that come back after a restart: each has a message in the directory `path`.

    ``async with DurableOperations(purgatory, "directory", {"payment": PaymentDue.restore}) as operations``,
    inside the block of the purgatory. `factories` makes operations again, by their kind: each gets the
    payload, and the seconds until the deadline, which are 0 or less when it has passed. It may choose another
    timeout.

    Entering brings back what is pending. Those whose deadline has passed come last: they are tried once, and
    expire at once. Leaving withdraws the operations from the purgatory. No hook runs, tasks that await one
    get OperationWithdrawn, and the messages stay for the next time.

    An operation that has ended, in whatever way, is gone from the disk soon after. When the process crashes
    before that, the operation comes back, and its hooks run again. It is the purgatory that ends an operation
    at its deadline. A message only keeps it on the disk: it is due a second later. If the operation is still
    pending then, because it was rescheduled, a new message takes its place.

    An operation that cannot be brought back, because its kind is unknown or the factory raises, stays on the
    disk. A second after its deadline that is tried again, and in the end it goes to the dead letters.

    `messages` is the store, for its statistics and dead letters. `max_payload` is in bytes, with the keys.
    Memory is needed for each pending operation. Entering raises as `DelayedMessages` does, and
    PurgatoryNotOpen when the purgatory is not open. Raises TypeError for a factory that is a coroutine
    function, or cannot be called with a payload and a timeout.
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
        self._kept: dict[str, Kept] = {}
        self._clearing = Clearing(self.messages, self._forget)
        self._recovery = Recovery(self.messages, clock, self._bring_back)
        self._restored = asyncio.Event()
        self._closed = asyncio.Event()
        self._running: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        return f"<DurableOperations {str(self.messages.path)!r} of {len(self)}>"

    def __len__(self) -> int:
        """How many operations have a message on the disk."""
        return len(self._kept)

    # Opening and closing

    async def __aenter__(self) -> Self:
        """Open the directory, and bring back what is pending."""
        if not self.purgatory._engine.open:
            raise PurgatoryNotOpen(f"{self.purgatory!r} is not open: enter it before {self!r}")
        await self.messages.__aenter__()
        try:
            # Once for all: an observer stays, and would keep this object with it.
            if _ENDS not in self.purgatory._engine.observers.all:
                self.purgatory.add_observer(_ENDS)
            await self._recovery.run()
        except BaseException as error:
            self._withdraw()
            await self.messages.__aexit__(type(error), error, error.__traceback__)
            raise
        self._restored.set()
        self._running = asyncio.create_task(
            self._clearing.run(), name=f"{self.messages.purgatory.name} clearing"
        )
        self._running.add_done_callback(self._clearing_ended)
        return self

    async def __aexit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Withdraw the operations, remove the messages of those that have ended, and close the directory."""
        self._withdraw()
        assert self._running is not None
        try:
            await uninterrupted(self._running)
        finally:
            await self.messages.__aexit__(exception_type, exception, traceback)

    def _clearing_ended(self, clearing: asyncio.Task[None]) -> None:
        if not self._closed.is_set():
            # The messages of operations that end would stay.
            error = RuntimeError("somebody has cancelled the task that clears the store")
            self.messages._fail(error, logging.WARNING)

    def _withdraw(self) -> None:
        """Take all operations out of the purgatory. Their messages stay."""
        self._closed.set()
        self._clearing.close()
        for operation in self.purgatory.operations():
            if (
                isinstance(operation, DurableOperation)
                and operation._kept is not None
                and operation._kept.owner is self
            ):
                operation.cancel()

    def _bring_back(self, receipt: Receipt, record: Record) -> None:
        """Bring back an operation with its message, and end one whose message this one has replaced."""
        self._restore(receipt.id, record, receipt)
        replaced = self._kept.get(record.replaces or "")
        if replaced is not None:
            replaced.operation.cancel()

    def _no_factory(self, kind: str) -> ValueError:
        known = ", ".join(map(repr, self._factories)) or "none"
        return ValueError(f"there is no factory for the kind {kind}; there are: {known}")

    def _restore(self, id: str, record: Record, receipt: Receipt | None = None) -> Kept:
        """Make an operation again, and let it wait. Raises what the factory raises."""
        if record.kind not in self._factories:
            raise self._no_factory(repr(record.kind))
        with Foreign(f"the factory of the kind {record.kind!r}"):
            operation = self._factories[record.kind](record.payload, record.deadline - self._clock())
        if not isinstance(operation, DurableOperation):
            if inspect.iscoroutine(operation):
                operation.close()
            raise TypeError(
                f"the factory of the kind {record.kind!r} returned {safe_repr(operation)}, "
                "which is no DurableOperation"
            )
        kept = Kept(self, operation, receipt)
        self._park(kept, record.keys)
        self._kept[id] = kept
        return kept

    # What users call

    async def offer(self, operation: D, keys: Iterable[Hashable]) -> D:
        """Try an operation, and let it wait if its condition does not hold, also through a restart.

        Like `Purgatory.try_complete_else_watch`. It returns when the operation is on the disk, or done. When
        its condition holds at once, nothing is written. The keys are str, int, float, bool, None, or tuples
        of these.

        Costs a sync that all calls of the moment share. Raises as `try_complete_else_watch` does; ValueError
        when there is no factory for its kind, or the payload is too long; TypeError for other keys; OSError
        when the disk is full, and StoreFailed: then the operation is withdrawn. When the call is cancelled,
        the operation is withdrawn, too.
        """
        if self._closed.is_set():
            raise PurgatoryClosed(f"{self!r} has been closed")
        if not self._restored.is_set():
            raise PurgatoryNotOpen(f"{self!r} is not open: use `async with`")
        kind = getattr(operation, "kind", None)
        if kind not in self._factories:
            raise self._no_factory(f"{kind!r} of {safe_repr(operation)}")
        if isinstance(keys, str | bytes):
            raise TypeError(f"keys must be several keys, as in [{keys!r}], not {keys!r}")
        watched = tuple(keys)
        # What cannot be written is refused before anything waits.
        body, due = self._message(operation, watched, operation.timeout)
        kept = Kept(self, operation)
        self._park(kept, watched)
        if not operation.done:
            storing = asyncio.create_task(self._store(kept, body, due))
            try:
                await uninterrupted(storing)
            except asyncio.CancelledError:
                operation.cancel()
                raise
            except Exception:
                if operation.cancel():
                    raise
        return operation

    # Messages

    def _park(self, kept: Kept, keys: tuple[Hashable, ...]) -> None:
        operation = kept.operation
        if operation._kept is not None:
            raise RuntimeError(f"{safe_repr(operation)} was offered before: make a new one for each wait")
        operation._kept = kept
        try:
            release(operation)
            self.purgatory.try_complete_else_watch(operation, keys)
        except BaseException:
            operation._kept = None
            reserve(operation)
            raise

    def _message(
        self,
        operation: DurableOperation[Any],
        keys: tuple[Hashable, ...],
        timeout: float | None,
        *,
        replaces: str | None = None,
    ) -> tuple[bytes, float]:
        """The message of an operation that has `timeout` seconds left, and when it is due."""
        deadline = self._clock() + (NEVER if timeout is None else timeout)
        with Foreign(f"{type(operation).__name__}.payload()"):
            payload = operation.payload()
        record = Record(operation.kind, keys, deadline, payload, replaces)
        return record.encoded(), deadline + GRACE

    async def _store(self, kept: Kept, body: bytes, due: float) -> None:
        receipt = await self.messages.schedule(body, at=due)
        kept.receipt = receipt
        self._kept[receipt.id] = kept
        if kept.over:
            self._clearing.add(receipt)

    async def _deliver(self, id: str, body: bytes, due: float) -> None:
        """The deadline of an operation has passed a second ago."""
        await self._restored.wait()
        if id in self._recovery.replaced:
            return
        kept = self._kept.get(id)
        if kept is None or not kept.over:
            if self._closed.is_set() or self.purgatory._engine.closing:
                await self._closed.wait()
                raise PurgatoryClosed("the operation waits for the next start")
            if kept is None:
                kept = self._restore(id, Record.parse(body))
            operation = kept.operation
            if not operation.done:
                # It was rescheduled, or the wall clock was set forward.
                timeout = None
                if operation.deadline is not None:
                    timeout = operation.deadline - asyncio.get_running_loop().time()
                await self._store(kept, *self._message(operation, operation.keys, timeout, replaces=id))
        self._forget(id)

    def _forget(self, id: str) -> None:
        self._kept.pop(id, None)

    def _ended(self, kept: Kept, timing: Timing) -> None:
        if self._closed.is_set():
            return
        if self.purgatory._engine.closing and _is_withdrawn_or_early(kept.operation, timing):
            return
        kept.over = True
        if kept.receipt is not None:
            self._clearing.add(kept.receipt)


class _Ends:
    """Tells the owners of durable operations that these have ended."""

    def operation_finished(self, purgatory: str, operation: DelayedOperation[Any], timing: Timing) -> None:
        if isinstance(operation, DurableOperation) and operation._kept is not None:
            operation._kept.owner._ended(operation._kept, timing)

    def key_checked(self, purgatory: str, key: Hashable, tried: int, completed: int, at: float) -> None:
        """A check ends nothing by itself."""


_ENDS: Final = _Ends()


def _is_withdrawn_or_early(operation: DurableOperation[Any], timing: Timing) -> bool:
    if operation.state is OperationState.EXPIRED:
        return operation.deadline is not None and timing.ended < operation.deadline
    return operation.state is OperationState.CANCELLED
