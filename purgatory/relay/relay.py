"""The facade: one relay for one purgatory."""

from __future__ import annotations

import asyncio
import logging
import math
import secrets
import sys
from contextlib import suppress
from threading import get_ident
from types import TracebackType
from typing import Final, Self

import anyio
from anyio import TASK_STATUS_IGNORED, CancelScope
from anyio.abc import TaskStatus

from purgatory._cancellation import Foreign, part, uninterrupted
from purgatory.errors import PurgatoryNotOpen
from purgatory.purgatory import Purgatory
from purgatory.relay.errors import RelayClosed, described
from purgatory.relay.flusher import Flusher
from purgatory.relay.interest import Interest
from purgatory.relay.keys import Key, encoded, shard_of
from purgatory.relay.link import Link
from purgatory.relay.pulse import Pulse
from purgatory.relay.refresher import Refresh, Refresher
from purgatory.relay.statistics import RelayStatistics
from purgatory.relay.transport import Transport

logger: Final = logging.getLogger("purgatory.relay")


class Relay:
    """Carries signals between purgatories in different processes.

    ``async with Purgatory("polls") as polls, Relay(polls, transport, refresh=load) as relay``. After a change
    of the shared state, call `signal` with its key. All processes check the operations that wait for the key.

    The promise: **if the state is written before the signal, no waiter misses it.** A waiter sees the change
    within the time of a publication, a call of `refresh` and the checks. If the publication was lost, the
    waiter sees the change as soon as the loss is detected and repaired, and at the latest after
    `anti_entropy` seconds and a refresh. A signal may wake a waiter several times, or for nothing, so a
    condition looks at the state. Signals have no order, and carry nothing.

    ``await refresh(keys)`` brings the shared state of `keys` into this process, where `try_complete` looks
    at it. There is one call at a time, for at most `max_batch` keys that are watched here. It must read the
    state that was written last: from the primary, and not from a cache. The keys are refreshed and then
    checked: on a signal; when they are watched and the value is unknown; when the subscription is confirmed;
    when the connection is lost, or silent; when the transport has missed publications; and, with jitter,
    within each `anti_entropy` seconds. A call that raises or lasts longer than `anti_entropy` seconds is
    logged, and made again. Without `refresh`, the keys are only checked: then conditions look at the shared
    state itself.

    Keys are str, bytes, int and tuples of these. With a relay, the purgatory refuses other keys (TypeError).

    The relay sends heartbeats to itself. It connects anew when no heartbeat arrives for `heartbeat` seconds,
    and when a connection takes longer than that. It stays subscribed to a key for `linger` seconds after the
    last watcher of the key has gone. When more than `max_keys` keys of one of the 256 shards wait to be
    published, the signal is for the whole shard.

    Entering connects, and returns when the first heartbeat is back. It raises what the transport raises when
    it cannot connect, and TimeoutError when no heartbeat comes back. Later the relay connects again by
    itself. Raises ValueError for a number that is not positive.
    """

    def __init__(
        self,
        purgatory: Purgatory,
        transport: Transport,
        *,
        refresh: Refresh | None = None,
        heartbeat: float = 10.0,
        anti_entropy: float = 30.0,
        linger: float = 30.0,
        max_batch: int = 500,
        max_keys: int = 1_000,
    ) -> None:
        for name, seconds in (("heartbeat", heartbeat), ("anti_entropy", anti_entropy), ("linger", linger)):
            if not 0 < seconds < math.inf:
                raise ValueError(f"{name} must be a positive number of seconds, not {seconds!r}")
        if max_batch < 1 or max_keys < 1:
            raise ValueError(f"max_batch and max_keys must be at least 1, not {max_batch!r} and {max_keys!r}")
        self.purgatory = purgatory
        self._transport = transport
        self._heartbeat = heartbeat
        self._caching = refresh is not None
        sender = secrets.token_hex(8)
        queued = asyncio.Event()
        self._interest = Interest(
            self._watches,
            queued.set,
            self._wanted_changed,
            self._clock,
            caching=self._caching,
            anti_entropy=anti_entropy,
        )
        self._refresher = Refresher(
            purgatory, self._interest, refresh, queued, self._clock, max_batch=max_batch, timeout=anti_entropy
        )
        self._flusher = Flusher(transport, sender, max_keys, heartbeat)
        self._link = Link(
            transport, self._interest, sender, self._clock, heartbeat=heartbeat, on_connected=self._connected
        )
        self._pulse = Pulse(
            self._interest,
            self._link,
            self._flusher,
            self._clock,
            heartbeat=heartbeat,
            anti_entropy=anti_entropy,
            linger=linger,
        )
        # None before it is entered.
        self._scope: CancelScope | None = None
        self._thread = 0
        # Set when it is connected for the first time, or has failed before.
        self._opened = asyncio.Event()
        self._ended = asyncio.Event()
        self._failure: BaseException | None = None
        self._task: asyncio.Task[None] | None = None

    def __repr__(self) -> str:
        state = "new"
        if self._failure is not None:
            state = "failed"
        elif self._ended.is_set():
            state = "closed"
        elif self._scope is not None:
            state = "connected" if self._link.hears else "not connected"
        return f"<Relay of {self.purgatory.name!r} {state}>"

    # Opening and closing

    async def __aenter__(self) -> Self:
        running = self._run(self._begin(), TASK_STATUS_IGNORED)
        self._task = asyncio.create_task(running, name=f"{self.purgatory.name} relay")
        self._task.add_done_callback(self._run_ended)
        try:
            await self._opened.wait()
        except BaseException:
            await self._cancel(self._task)
            raise
        if self._task.done():
            self._task.result()
        return self

    async def __aexit__(
        self,
        exception_type: type[BaseException] | None,
        exception: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Close the relay. Raises what it has failed with, if no other exception leaves the block."""
        assert self._task is not None
        try:
            if exception is None:
                await self.aclose()
        finally:
            await self._cancel(self._task)
        if exception is None and self._failure is not None:
            raise self._failure

    async def aclose(self) -> None:
        """Publish the signals that wait, for at most `heartbeat` seconds, and end. Twice is harmless.

        Afterwards, `signal` checks its key in this process only.
        """
        scope = self._scope
        if scope is None:
            return
        try:
            # When it has ended already, this raises at once.
            with anyio.move_on_after(self._heartbeat) as publishing, suppress(RelayClosed):
                await self._flusher.taken()
            if publishing.cancelled_caught:
                logger.warning("%r ends before its last signals could be published", self)
        finally:
            scope.cancel()
        await self._ended.wait()

    async def run(self, *, task_status: TaskStatus[None] = TASK_STATUS_IGNORED) -> None:
        """Be open, in a task group of yours: ``await task_group.start(relay.run)``.

        Returns after `aclose`. A cancellation ends it at once. Raises RuntimeError for a second call,
        PurgatoryNotOpen when the purgatory is not open, TypeError when somebody waits for a key that has no
        encoding, and what the transport raises when it cannot connect or publish.
        """
        await self._run(self._begin(), task_status)

    def _begin(self) -> CancelScope:
        if self._scope is not None:
            raise RuntimeError(f"{self!r} was entered before: make a new one")
        if not self.purgatory.open:
            raise PurgatoryNotOpen(f"{self.purgatory!r} is not open: enter it before its relay")
        self.purgatory.observe_keys(self._interest)
        self._thread = get_ident()
        self._scope = CancelScope()
        return self._scope

    async def _run(self, scope: CancelScope, task_status: TaskStatus[None]) -> None:
        try:
            for key in self.purgatory.watched_keys(sys.maxsize):
                self._interest.key_watched(key)
            with scope:
                await self._work(task_status)
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            self._failure = _first(error)
        finally:
            self.purgatory.observe_keys(None)
            self._flusher.give_up()
            try:
                await self._close_transport()
            finally:
                self._ended.set()
        if self._failure is not None:
            raise self._failure

    async def _work(self, task_status: TaskStatus[None]) -> None:
        async with anyio.create_task_group() as group:
            for run in (self._pulse.run, self._refresher.run):
                group.start_soon(part, "the relay", run)
            await group.start(self._link.run)
            # It may subscribe. The first heartbeat shows whether it may publish, and hears what it publishes.
            await group.start(self._flusher.run)
            await self._link.heard.wait()
            self._opened.set()
            task_status.started()

    async def _close_transport(self) -> None:
        try:
            with anyio.move_on_after(self._heartbeat, shield=True), Foreign("the transport"):
                await self._transport.aclose()
        except Exception as error:
            logger.warning("the transport could not be closed: %s", described(error))

    async def _cancel(self, task: asyncio.Task[None]) -> None:
        assert self._scope is not None
        self._scope.cancel()
        task.cancel()
        await uninterrupted(asyncio.gather(task, return_exceptions=True))

    def _run_ended(self, task: asyncio.Task[None]) -> None:
        was_open = self._opened.is_set()
        self._opened.set()
        assert self._scope is not None
        if self._failure is None and not self._scope.cancel_called:
            # At its end, asyncio.run cancels all tasks.
            self._failure = RuntimeError("somebody has cancelled the task of the relay")
            logger.warning("%r: this process hears no signals any more: %s", self, self._failure)
        elif self._failure is not None and was_open:
            message = f"{self!r}: this process hears no signals any more"
            context = {"message": message, "exception": self._failure}
            asyncio.get_running_loop().call_exception_handler(context)

    # What users call

    def signal(self, key: Key) -> int:
        """The shared state of `key` has changed: check the key here now, and in the other processes soon.

        Call it after the state is written. Returns how many operations it has completed here. It does not
        wait: signals that come while others are being published are published together, each key once. The
        other processes get the signal as soon as the transport can be reached, unless this process ends
        before.

        It costs what `Purgatory.check_and_complete` and writing the key cost. Call it in the thread of the
        event loop; from another thread, ``loop.call_soon_threadsafe(relay.signal, key)``. Raises TypeError or
        ValueError for a key that has no encoding, RuntimeError in another thread, and RelayClosed before the
        relay was entered and after it has failed. After closing it only checks the key here.
        """
        text = encoded(key)
        if self._scope is None or self._failure is not None:
            raise RelayClosed(f"{self!r} cannot signal: use `async with`") from self._failure
        if not self._flusher.over:
            if get_ident() != self._thread:
                words = "from another thread, loop.call_soon_threadsafe(relay.signal, key)"
                raise RuntimeError(f"{self!r} belongs to the thread of its event loop: {words}")
            # First what cannot raise: a hook may.
            self._flusher.add(shard_of(text), text)
            if self._caching:
                self._interest.signalled(key)
        return self.purgatory.check_and_complete(key)

    async def signalled(self, key: Key) -> int:
        """Do what `signal` does, and return when the transport has taken the signal.

        It waits as long as the transport cannot be reached. If the call is cancelled, the signal goes out all
        the same. Raises RelayClosed when the relay is not open, or ends before the transport has taken it.
        """
        completed = self.signal(key)
        await self._flusher.taken()
        return completed

    def statistics(self) -> RelayStatistics:
        """The present figures, O(1). Any thread may call it."""
        beat = self._link.last_beat
        return RelayStatistics(
            connected=self._link.hears and not self._ended.is_set(),
            heartbeat_age=None if beat is None else self._clock() - beat,
            generation=self._link.generation,
            gaps=self._link.gaps,
            keys=len(self._interest.entries),
            waiting=self._refresher.waiting,
            refreshes=self._refresher.calls,
            refreshed=self._refresher.refreshed,
            refresh_failures=self._refresher.failures,
            signals=self._flusher.signals,
            arrived=self._link.arrived,
            published=self._flusher.published,
            publish_failures=self._flusher.failures,
            collapses=self._flusher.collapses,
            unreadable=self._link.unreadable,
        )

    # What the parts call

    def _clock(self) -> float:
        # The loop's time, in any thread.
        return self.purgatory.timer.clock()

    def _watches(self, key: Key) -> bool:
        return self.purgatory.count_watching(key, 1) > 0

    def _wanted_changed(self) -> None:
        self._link.wanted_changed()

    def _connected(self) -> None:
        self._flusher.add_beat()
        self._flusher.retry()


def _first(error: BaseException) -> BaseException:
    """The first exception of a task group. When a server goes away, several calls fail at the same time."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error
