"""The facade: messages that are delivered at their time, through crashes."""

from __future__ import annotations

import asyncio
import math
import os
import time
from collections.abc import AsyncIterator, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from purgatory import Purgatory
from purgatory._cancellation import uninterrupted
from purgatory.delayed.delivery import Deliver, Delivery, check_function
from purgatory.delayed.message import Message, PendingMessage, Receipt
from purgatory.delayed.open_store import DelayedStatistics, OpenStore
from purgatory.delayed.storage.dead_letters import DeadLetter
from purgatory.delayed.storage.disk import Disk
from purgatory.delayed.storage.frames import CANCELLED, MAX_PAYLOAD
from purgatory.delayed.storage.requests import End, Put, Stored, StoreFailed, check_id, milliseconds
from purgatory.delayed.storage.store import Store
from purgatory.errors import PurgatoryClosed, PurgatoryNotOpen
from purgatory.observer import Observer


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

    `slot` is the number of seconds for which one file holds messages. It cannot change later. Memory holds
    the next ten to twenty seconds, with 16 bytes for most messages. Messages that are due within a second
    wait in `purgatory`. Metrics and the dashboard show it as any other; its `observers` see each delivery.

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
            words = "slot must be a positive number of whole milliseconds, in seconds"
            raise ValueError(f"{words}, not {slot!r}")
        if workers < 1 or attempts < 1:
            raise ValueError(f"workers and attempts must be at least 1, not {workers!r} and {attempts!r}")
        if not 0 < backoff < math.inf:
            raise ValueError(f"backoff must be a positive number of seconds, not {backoff!r}")
        if close_timeout is not None and not 0 <= close_timeout < math.inf:
            words = "close_timeout must be a number of seconds from 0 on, or None"
            raise ValueError(f"{words}, not {close_timeout!r}")
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
        self._store: OpenStore | None = None

    def __repr__(self) -> str:
        state = "new" if self._store is None else "open" if self._store.is_open else "closed"
        return f"<DelayedMessages {str(self.path)!r} {state}>"

    async def __aenter__(self) -> Self:
        """Open the directory, and deliver what is due. The cost depends on the log, not on what is pending.

        Raises RuntimeError when entered a second time.
        """
        if self._store is not None:
            raise RuntimeError(f"{self!r} was entered before: make a new one")
        loop = asyncio.get_running_loop()
        thread = ThreadPoolExecutor(1, thread_name_prefix="purgatory delayed log")
        now = int(self._clock() * 1000)
        opening = loop.run_in_executor(thread, Store, self.path, self._slot_ms, self._disk, now)
        try:
            store = await uninterrupted(opening)
            self._store = OpenStore(store, thread, self.purgatory, self._clock, self._new_delivery)
        except BaseException:
            if opening.exception() is None:
                opening.result().close()
            thread.shutdown()
            raise
        return self

    async def __aexit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the directory. What is pending stays there, and is delivered when it is open again.

        It waits for the deliveries that are under way, and takes calls until then: a delivery may schedule
        or cancel other messages. After `close_timeout` seconds, or at once when an exception leaves the block
        or the task is cancelled, it cancels them, and they come again at the next opening. A warning names
        the deliveries that it waits for. It always waits for the disk. Raises StoreFailed when a sync has
        failed, or the error that has ended the store. A second call does the same.
        """
        assert self._store is not None
        await self._store.close(exception, self._close_timeout)

    async def schedule(self, payload: bytes, *, at: float | datetime, id: str | None = None) -> Receipt:
        """Store a message that is due at `at`. It is on the disk when this returns.

        `at` is an aware datetime, or seconds since the epoch, and rounded up to a millisecond. What is due
        already is delivered at once. Without an `id`, the message gets one. A second message with the same
        id, payload and due time is the same message, as long as it is still to come. While a message is
        being delivered, another one can have its id: so `deliver` schedules the next run of a recurring job.

        Costs a sync, which is shared with the other calls that wait. Raises IdTaken for the id of another
        message that is still to come; ValueError and TypeError for wrong arguments; OSError when it cannot be
        written, for example because the disk is full; StoreFailed when nobody knows whether it was written;
        PurgatoryClosed when the store is not open. A call that is cancelled may store the message or not.
        """
        if not isinstance(payload, bytes):
            raise TypeError(f"payload must be bytes, not {type(payload).__name__}")
        if len(payload) > self._max_payload:
            words = "store it elsewhere and schedule a reference"
            raise ValueError(
                f"a payload of {len(payload)} bytes is too long: max_payload is {self._max_payload}; {words}"
            )
        due = milliseconds(at)
        if id is not None:
            check_id(id)
        store = self._opened()
        put = Put(due, id, payload, store.loader.is_soon(due), store.delivery.under_way)
        answer = await store.committer.submit(put)
        assert isinstance(answer, Stored)
        store.scheduled += not answer.repeated
        return Message(answer.token, due, id, b"").receipt

    async def cancel(self, receipt: Receipt) -> bool:
        """Cancel a message. True if it was still to come: then it is never delivered, also after a crash.

        False if it is being delivered, was delivered or was cancelled. The cost does not depend on how much
        is pending: a sync, which is shared with the other calls that wait, and for a message that is due
        within seconds a search in memory through the messages of its millisecond. Raises OSError and
        StoreFailed as `schedule` does. Then the message stays.
        """
        store = self._opened()
        due = round(receipt.due * 1000)
        named = receipt.id != f"{receipt.token:016x}"
        is_soon = store.loader.is_soon(due)
        end = End(CANCELLED, receipt.token, due, named, check=not is_soon)
        cancelled = bool(await (store.cancel_soon(end) if is_soon else store.committer.submit(end)))
        store.cancelled += cancelled
        return cancelled

    async def find(self, id: str) -> Receipt | None:
        """The receipt of the message with this id that is still to come; None if there is none.

        It knows the ids that users chose. It reads a file of some thousand ids.
        """
        check_id(id)
        store = self._opened()
        found = await store.loop.run_in_executor(store.thread, store.store.ids.taken, id)
        return None if found is None else Receipt(id, found.due / 1000, found.token)

    async def pending(self) -> AsyncIterator[PendingMessage]:
        """The messages that are still to come, in no certain order.

        A message that comes or ends meanwhile may be missing. It reads the log and all slot files, and holds
        up to 1,000 messages, or 8 MiB, at a time. Raises OSError, and PurgatoryClosed when the store closes
        meanwhile.
        """
        store = self._opened()
        # Then few messages are in the log alone. On a full disk there are many.
        with suppress(OSError):
            await store.loader.horizon.spread()
        async for piece in store.loader.pieces(store.store.pending()):
            for message in piece:
                yield PendingMessage(message.receipt, message.payload)

    async def dead_letters(self) -> AsyncIterator[DeadLetter]:
        """The messages that were set aside, the oldest first. It holds as many at a time as `pending`."""
        store = self._opened()
        async for piece in store.loader.pieces(store.store.dead_letters.read()):
            for letter in piece:
                yield letter

    def statistics(self) -> DelayedStatistics:
        """What was counted so far. Raises PurgatoryNotOpen before the store was opened."""
        return self._entered().statistics()

    async def failed(self) -> None:
        """Wait until the store fails, and raise StoreFailed. Return when it is closed without that.

        A block that waits for something else does not learn that the store has failed. So start this in a
        task group around the block. Raises PurgatoryNotOpen before the store was opened.
        """
        store = self._entered()
        if store.is_open:
            self._opened()
        await store.ended.wait()
        if store.failure is not None:
            self._opened()

    def _entered(self) -> OpenStore:
        if self._store is None:
            raise PurgatoryNotOpen(f"{self!r} is not open: use `async with`")
        return self._store

    def _opened(self) -> OpenStore:
        store = self._entered()
        if store.failure is not None:
            raise StoreFailed(f"{self.path} is closed: {store.failure}") from store.failure
        if not store.is_open:
            raise PurgatoryClosed(f"{self!r} has been closed")
        if asyncio.get_running_loop() is not store.loop:
            words = "call it there, for example by asyncio.run_coroutine_threadsafe(coroutine, loop)"
            raise RuntimeError(f"{self!r} belongs to another event loop: {words}")
        return store
