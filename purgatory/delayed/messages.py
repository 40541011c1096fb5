"""The facade: messages that are delivered at their time, through crashes."""

from __future__ import annotations

import asyncio
import logging
import math
import os
import time
from collections.abc import AsyncIterator, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

import anyio

from purgatory import Purgatory
from purgatory._cancellation import part, uninterrupted
from purgatory.delayed.arguments import check_function, check_id, milliseconds
from purgatory.delayed.committer import Committer
from purgatory.delayed.dead_letters import DeadLetter
from purgatory.delayed.delivery import Deliver, Delivery
from purgatory.delayed.disk import Disk
from purgatory.delayed.errors import StoreFailed
from purgatory.delayed.frame import CANCELLED, DELIVERED, MAX_PAYLOAD
from purgatory.delayed.ids import Taken
from purgatory.delayed.loader import Loader
from purgatory.delayed.message import Message, PendingMessage, Receipt
from purgatory.delayed.requests import End, Find, Put, Stored
from purgatory.delayed.statistics import DelayedStatistics
from purgatory.delayed.store import Store
from purgatory.errors import PurgatoryClosed, PurgatoryNotOpen, own_error
from purgatory.observer import Observer

logger = logging.getLogger("purgatory.delayed")


class DelayedMessages:
    """Delivers each message at its time or later, at least once, also after a crash.

    ``async with DelayedMessages("messages", deliver) as delayed``. The directory `path` is made if it does
    not exist. At the due time of a message, the store calls ``await deliver(id, payload, due)``; `due` is in
    seconds since the epoch. A message that was being delivered when the process crashed is delivered again,
    with the same id.

    A message is never early by the wall clock `clock`. On an idle loop it is about two milliseconds late. At
    most `workers` deliveries run at a time. When `deliver` raises, the message is tried again after `backoff`
    seconds, then after twice as long, up to a minute. After `attempts` attempts it goes to the dead letters.

    Leaving waits `close_timeout` seconds for deliveries before it cancels them; None is without a limit.

    `slot` is the number of seconds for which one file holds messages. It cannot change later. Memory does
    not grow with what is pending: it holds the next ten to twenty seconds, with 16 bytes for most messages.

    `purgatory` is the purgatory in which messages wait that are due within a second. Metrics and the
    dashboard show it as any other; its `observers` see each delivery time.

    Entering raises OSError, StoreLocked when the directory is in use, and ValueError when it has another
    `slot`, or when its format or its checkpoint is damaged or missing. Raises ValueError for a number that is
    not positive, and TypeError for a `deliver` that cannot be called like this. A `deliver` that returns what
    cannot be awaited, as a plain function does, fails the store with TypeError at its first call.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        deliver: Deliver,
        *,
        slot: float = 1.0,
        workers: int = 100,
        attempts: int = 10,
        backoff: float = 1.0,
        max_payload: int = 1 << 20,
        close_timeout: float | None = 20.0,
        name: str = "delayed",
        observers: Iterable[Observer] = (),
        clock: Callable[[], float] = time.time,
        disk: Disk | None = None,
    ) -> None:
        check_function("deliver", deliver, "id", "payload", "due")
        slot_ms = round(slot * 1000) if 0 < slot < math.inf else 0
        if slot_ms < 1 or abs(slot_ms - slot * 1000) > 1e-6 * slot_ms:
            raise ValueError(
                f"slot must be a positive number of whole milliseconds, in seconds, not {slot!r}"
            )
        if workers < 1 or attempts < 1:
            raise ValueError(f"workers and attempts must be at least 1, not {workers!r} and {attempts!r}")
        if not 0 < backoff < math.inf:
            raise ValueError(f"backoff must be a positive number of seconds, not {backoff!r}")
        if close_timeout is not None and not 0 <= close_timeout < math.inf:
            raise ValueError(
                f"close_timeout must be a number of seconds from 0 on, or None, not {close_timeout!r}"
            )
        if not 0 < max_payload <= MAX_PAYLOAD:
            raise ValueError(f"max_payload must be from 1 to {MAX_PAYLOAD} bytes, not {max_payload!r}")
        # The working directory may change later.
        self.path = Path(path).absolute()
        self.purgatory = Purgatory(name, observers=observers)
        self._slot_ms = slot_ms
        self._max_payload = max_payload
        self._close_timeout = close_timeout
        self._clock = clock
        self._disk = Disk() if disk is None else disk
        self._new_delivery = partial(Delivery, deliver, workers, attempts, backoff)
        self._scheduled = 0
        self._cancelled = 0
        self._parts: _Parts | None = None
        self._open = False
        self._failure: BaseException | None = None
        # Set when the store has failed, or is closed.
        self._ended = asyncio.Event()
        self._running: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        state = "open" if self._open else "new" if self._parts is None else "closed"
        return f"<DelayedMessages {str(self.path)!r} {state}>"

    # Opening and closing

    async def __aenter__(self) -> Self:
        """Open the directory, and deliver what is due. The cost is that of the log, not of what is pending.

        Raises RuntimeError when entered a second time.
        """
        if self._parts is not None:
            raise RuntimeError(f"{self!r} was entered before: make a new one")
        loop = asyncio.get_running_loop()
        thread = ThreadPoolExecutor(1, thread_name_prefix="purgatory delayed log")
        opening = loop.run_in_executor(thread, Store, self.path, self._slot_ms, self._disk, self._now())
        try:
            store = await uninterrupted(opening)
            delivery = self._new_delivery(self._delivered)
            loader = Loader(store, self.purgatory, self._clock, delivery.due, self._seal, self._fail)
            committer = Committer(store, thread, loader.stored, loader.ended, self._fail)
            self.purgatory.start()
        except BaseException:
            if opening.exception() is None:
                opening.result().close()
            thread.shutdown()
            raise
        self._parts = _Parts(store, delivery, loader, committer, thread)
        self._running = loop.create_task(self._run(self._parts), name=f"{self.purgatory.name} messages")
        self._running.add_done_callback(self._run_ended)
        self._open = True
        return self

    async def __aexit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the directory. What is pending stays there, and is delivered when it is open again.

        It waits for the deliveries that are under way, and takes calls until then: a delivery may schedule
        or cancel other messages. After `close_timeout` seconds it cancels them; they come again when the
        directory is open again. It cancels them at once when an exception leaves the block, or the task is
        cancelled. A warning names those that it waits for. It always waits for the disk. Raises StoreFailed
        when a sync has failed, and whatever else has ended the store. A second call does the same.
        """
        parts, running = self._parts, self._running
        assert parts is not None
        assert running is not None
        parts.delivery.close()
        if exception is not None:
            running.cancel()
        seconds = self._close_timeout
        how = "without a limit" if seconds is None else f"at most {seconds:g} s"
        try:
            if exception is None:
                await parts.delivery.ended(running, seconds, how)
        finally:
            running.cancel()
            if self._closing is None:
                self._closing = asyncio.create_task(self._close(parts, running))
            await uninterrupted(self._closing)
        if self._failure is not None and exception is None:
            raise self._failure

    async def _close(self, parts: _Parts, running: asyncio.Task[None]) -> None:
        await parts.delivery.ended(running, None, "which were cancelled and go on")
        self._open = False
        if self._failure is None:
            try:
                await parts.loader.turns.spread()
            except OSError as error:
                # The next opening finds them there.
                logger.error("%s: messages stay in the log: %s", self.path, error)
            except BaseException as error:
                # The threads and the lock must not stay.
                self._fail(error)
        await parts.loader.close()
        # Nothing is parked any more.
        await self.purgatory.aclose(cancel_pending=True)
        try:
            # Behind all that was submitted.
            await parts.committer.close()
        finally:
            await asyncio.get_running_loop().run_in_executor(parts.thread, parts.store.close)
            parts.thread.shutdown()
            self._ended.set()

    async def _run(self, parts: _Parts) -> None:
        async with anyio.create_task_group() as group:
            turns = parts.loader.turns
            for run in (turns.turn_on, turns.index_on, parts.loader.read_ahead):
                group.start_soon(part, "the disk or the clock", run)
            await parts.delivery.run(parts.loader)
            group.cancel_scope.cancel()

    def _run_ended(self, running: asyncio.Task[None]) -> None:
        assert self._parts is not None
        error = None if running.cancelled() else running.exception()
        if error is not None:
            self._fail(error)
        elif not self._parts.delivery.closing:
            # At its end, asyncio.run cancels all tasks.
            self._fail(RuntimeError("somebody has cancelled the task of the store"), logging.WARNING)

    def _fail(self, error: BaseException, level: int = logging.CRITICAL) -> None:
        """Take and deliver nothing more: nobody knows what is on the disk, or a task has failed."""
        while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
            error = error.exceptions[0]
        error = own_error(error, "the disk")
        if self._failure is None:
            logger.log(level, "%s is closed: %s", self.path, error)
            self._failure = error
            self._open = False
            self._ended.set()
            assert self._running is not None
            self._running.cancel()

    # What users call

    async def schedule(self, payload: bytes, *, at: float | datetime, id: str | None = None) -> Receipt:
        """Store a message that is due at `at`. It is on the disk when this returns.

        `at` is an aware datetime, or seconds since the epoch, and rounded up to a millisecond. What is due
        already is delivered at once. Without an `id`, the message gets one. A second message with the same
        id, payload and due time is the same message, as long as it is still to come. While a message is
        being delivered, another one can have its id: so `deliver` schedules the next run of a recurring job.

        Costs a sync that all calls of the moment share. Raises IdTaken for the id of another message that is
        still to come; ValueError and TypeError for wrong arguments; OSError when it cannot be written, for
        example because the disk is full; StoreFailed when nobody knows whether it was; PurgatoryClosed
        when the store is not open. When the call is cancelled, the message may be stored or not.
        """
        if not isinstance(payload, bytes):
            raise TypeError(f"payload must be bytes, not {type(payload).__name__}")
        if len(payload) > self._max_payload:
            raise ValueError(
                f"a payload of {len(payload)} bytes is too long: max_payload is {self._max_payload}; "
                "store it elsewhere and schedule a reference"
            )
        due = milliseconds(at)
        if id is not None:
            check_id(id)
        parts = self._opened()
        put = Put(due, id, payload, parts.loader.is_soon(due), parts.delivery.under_way)
        answer = await parts.committer.submit(put)
        assert isinstance(answer, Stored)
        self._scheduled += not answer.repeated
        return Message(answer.token, due, id, b"").receipt

    async def cancel(self, receipt: Receipt) -> bool:
        """Cancel a message. True if it was still to come: then it is never delivered, also after a crash.

        False if it is being delivered, was delivered or was cancelled. The cost does not depend on how much
        is pending: a sync that all calls of the moment share, and for a message that is due within seconds
        a search through those of its millisecond in memory. Raises OSError and StoreFailed as `schedule`
        does; then the message stays.
        """
        parts = self._opened()
        due = round(receipt.due * 1000)
        named = receipt.id != f"{receipt.token:016x}"
        if not parts.loader.is_soon(due):
            end = End(CANCELLED, receipt.token, due, named, check=True)
            cancelled = bool(await parts.committer.submit(end))
        else:
            cancelled = await self._cancel_soon(parts, receipt.token, due, named)
        self._cancelled += cancelled
        return cancelled

    async def find(self, id: str) -> Receipt | None:
        """The receipt of the message with this id that is still to come; None if there is none.

        It knows the ids that users chose. The cost is a look into a file of some thousand ids.
        """
        check_id(id)
        found = await self._opened().committer.submit(Find(id))
        return Receipt(id, found.due / 1000, found.token) if isinstance(found, Taken) else None

    async def _cancel_soon(self, parts: _Parts, token: int, due: int, named: bool) -> bool:
        withdrawn = await parts.loader.withdraw(token, due)
        if withdrawn is None:
            return False
        try:
            await parts.committer.submit(End(CANCELLED, token, due, named))
        except (OSError, StoreFailed):
            parts.loader.restore(withdrawn)
            raise
        except asyncio.CancelledError:
            # It is about to be written.
            parts.loader.ended(withdrawn.location)
            raise
        parts.loader.ended(withdrawn.location)
        return True

    async def pending(self) -> AsyncIterator[PendingMessage]:
        """The messages that are still to come, in no certain order.

        One that comes or ends meanwhile may be among them or not. It reads the log and all slot files, and
        holds some hundred messages at a time. Raises OSError, and PurgatoryClosed when the store is closed
        meanwhile.
        """
        async for piece in self._opened().loader.pending():
            for message in piece:
                yield PendingMessage(message.receipt, message.payload)

    async def dead_letters(self) -> AsyncIterator[DeadLetter]:
        """The messages that were set aside, the oldest first.

        It reads the file as it goes, and holds ten messages at a time. Raises OSError, and PurgatoryClosed
        when the store is closed meanwhile.
        """
        async for piece in self._opened().loader.dead_letters():
            for letter in piece:
                yield letter
            self._opened()

    def statistics(self) -> DelayedStatistics:
        """What was counted so far. Raises PurgatoryNotOpen before the store was opened."""
        parts = self._parts
        if parts is None:
            raise PurgatoryNotOpen(f"{self!r} is not open: use `async with`")
        next_due = parts.delivery.next_due
        return DelayedStatistics(
            scheduled=self._scheduled,
            delivered=parts.delivery.delivered,
            cancelled=self._cancelled,
            failures=parts.delivery.failures,
            dead=parts.delivery.dead,
            retrying=parts.loader.room.retrying,
            waiting=parts.delivery.waiting,
            lag_seconds=0.0 if next_due is None else max(0.0, self._clock() - next_due),
            log_bytes=parts.store.log.written,
            slot_bytes=parts.store.slots.written,
            failed=int(self._failure is not None),
        )

    async def failed(self) -> None:
        """Wait until the store fails, and raise StoreFailed. Return when it is closed without that.

        A store that has failed delivers nothing more, and a block that waits for something else does not
        learn of it. So start this in a task group around the block. Raises PurgatoryNotOpen before the store
        was opened.
        """
        if self._parts is None or self._open:
            self._opened()
        await self._ended.wait()
        if self._failure is not None:
            self._opened()

    # Parts

    def _opened(self) -> _Parts:
        if self._open and self._parts is not None:
            assert self._running is not None
            if asyncio.get_running_loop() is not self._running.get_loop():
                raise RuntimeError(
                    f"{self!r} belongs to another event loop: call it there, for example by "
                    "asyncio.run_coroutine_threadsafe(coroutine, loop)"
                )
            return self._parts
        if self._failure is not None:
            raise StoreFailed(f"{self.path} is closed: {self._failure}") from self._failure
        if self._parts is None:
            raise PurgatoryNotOpen(f"{self!r} is not open: use `async with`")
        raise PurgatoryClosed(f"{self!r} has been closed")

    def _delivered(self, message: Message) -> None:
        parts = self._parts
        assert parts is not None
        end = End(DELIVERED, message.token, message.due, message.name is not None)
        parts.committer.note(end, message)

    async def _seal(self) -> int:
        assert self._parts is not None
        return await self._parts.committer.seal()

    def _now(self) -> int:
        return int(self._clock() * 1000)


@dataclass(frozen=True, slots=True)
class _Parts:
    """What an open store consists of."""

    store: Store
    delivery: Delivery
    loader: Loader
    committer: Committer
    # It writes the log.
    thread: ThreadPoolExecutor
