"""An open store: its threads and tasks, until it is closed or has failed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from purgatory import Purgatory
from purgatory._cancellation import part, uninterrupted
from purgatory.delayed.committer import Committer
from purgatory.delayed.delivery import Delivery
from purgatory.delayed.loader import Loader
from purgatory.delayed.storage.requests import End, StoreFailed
from purgatory.delayed.storage.store import Store
from purgatory.errors import own_error

logger = logging.getLogger("purgatory.delayed")


@dataclass(frozen=True, slots=True)
class DelayedStatistics:
    """Counts since the store was opened, and gauges of now.

    `scheduled`, `delivered`, `cancelled` and `dead` count messages; `failures` counts deliveries that raised.
    `retrying` messages wait for another attempt. `waiting` messages are due and wait for a worker, the first
    one for `lag_seconds`. `log_bytes` and `slot_bytes` were written to the log and to the slot files.
    `failed` is 1 when the store has failed and delivers nothing more, else 0.
    """

    scheduled: int
    delivered: int
    cancelled: int
    failures: int
    dead: int
    retrying: int
    waiting: int
    lag_seconds: float
    log_bytes: int
    slot_bytes: int
    failed: int


@dataclass(eq=False, repr=False)
class OpenStore:
    """Writes, loads and delivers the messages of `store`, from now until `close`. `thread` writes the log.

    `failure` says why the store takes and delivers nothing more. `ended` is set then, and after `close`.
    """

    store: Store
    thread: ThreadPoolExecutor
    purgatory: Purgatory
    clock: Callable[[], float]
    new_delivery: Callable[[Loader, Committer], Delivery]

    def __post_init__(self) -> None:
        self.loader = Loader(
            self.store,
            self.purgatory,
            self.clock,
            due=lambda message, since: self.delivery.due(message, since),
            seal=lambda: self.committer.seal(),
        )
        self.committer = Committer(self.store, self.thread, self.loader, self.fail)
        self.delivery = self.new_delivery(self.loader, self.committer)
        self.scheduled = 0
        self.cancelled = 0
        self.is_open = True
        self.failure: BaseException | None = None
        self.ended = asyncio.Event()
        self.loop = asyncio.get_running_loop()
        self.purgatory.start()
        self._running = self.loop.create_task(self._run(), name=f"{self.purgatory.name} messages")
        self._running.add_done_callback(self._run_ended)
        self._closing: asyncio.Task[None] | None = None

    async def _run(self) -> None:
        horizon = self.loader.horizon
        # anyio's task group cancels its tasks at each turn of the loop until they end. This one cancels once.
        async with asyncio.TaskGroup() as group:

            def start(run: Callable[[], Awaitable[object]]) -> asyncio.Task[None]:
                return group.create_task(part("the disk or the clock", run))

            others = [start(run) for run in (horizon.turn_on, horizon.index_on, self.loader.read_ahead)]
            await asyncio.wait([start(self.delivery.work) for _ in range(self.delivery.workers)])
            for task in others:
                task.cancel()

    def _run_ended(self, running: asyncio.Task[None]) -> None:
        error = None if running.cancelled() else running.exception()
        if error is not None:
            self.fail(error)
        elif not self.delivery.closing:
            # At its end, asyncio.run cancels all tasks.
            self.fail(RuntimeError("somebody has cancelled the task of the store"), logging.WARNING)

    def fail(self, error: BaseException, level: int = logging.CRITICAL) -> None:
        """Take and deliver nothing more: nobody knows what is on the disk, or a task has failed."""
        while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
            error = error.exceptions[0]
        error = own_error(error, "the disk")
        if self.failure is None:
            logger.log(level, "%s is closed: %s", self.store.path, error)
            self.failure = error
            self.is_open = False
            self.ended.set()
            self._running.cancel()

    async def cancel_soon(self, end: End) -> bool:
        withdrawn = await self.loader.withdraw(end.token, end.due)
        if withdrawn is None:
            return False
        location, seconds = withdrawn
        try:
            await self.committer.submit(end)
        except (OSError, StoreFailed):
            self.loader.restore(location, seconds)
            raise
        except asyncio.CancelledError:
            # It is about to be written.
            self.loader.ended(location)
            raise
        self.loader.ended(location)
        return True

    def statistics(self) -> DelayedStatistics:
        next_due = self.delivery.next_due
        return DelayedStatistics(
            scheduled=self.scheduled,
            delivered=self.delivery.delivered,
            cancelled=self.cancelled,
            failures=self.delivery.failures,
            dead=self.delivery.dead,
            retrying=self.loader.room.retrying,
            waiting=len(self.delivery.waiting),
            lag_seconds=0.0 if next_due is None else max(0.0, self.clock() - next_due),
            log_bytes=self.store.log.written,
            slot_bytes=self.store.slots.written,
            failed=int(self.failure is not None),
        )

    async def close(self, exception: BaseException | None, seconds: float | None) -> None:
        """Wait `seconds` for deliveries, or not after an `exception`; cancel them; close the store."""
        self.delivery.close()
        how = "without a limit" if seconds is None else f"at most {seconds:g} s"
        try:
            if exception is None:
                await self.delivery.ended(self._running, seconds, how)
        finally:
            self._running.cancel()
            if self._closing is None:
                self._closing = asyncio.create_task(self._close())
            await uninterrupted(self._closing)
        if self.failure is not None and exception is None:
            raise self.failure

    async def _close(self) -> None:
        await self.delivery.ended(self._running, None, "which were cancelled and go on")
        self.is_open = False
        if self.failure is None:
            try:
                await self.loader.horizon.spread()
            except OSError as error:
                # The next opening finds the messages there.
                logger.error("%s: messages stay in the log: %s", self.store.path, error)
            except BaseException as error:
                # The threads and the lock must not stay.
                self.fail(error)
        await self.loader.close()
        # From now on, no message is parked.
        await self.purgatory.aclose(cancel_pending=True)
        try:
            # After all requests.
            await self.committer.close()
        finally:
            await asyncio.get_running_loop().run_in_executor(self.thread, self.store.close)
            self.thread.shutdown()
            self.ended.set()
