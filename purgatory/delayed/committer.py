"""Group commit: calls that wait at the same time share a sync."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass
from math import inf
from typing import Final

from purgatory.delayed import schedule
from purgatory.delayed.loader import Loader
from purgatory.delayed.message import Message
from purgatory.delayed.storage.frames import DELIVERED
from purgatory.delayed.storage.requests import Answer, End, IdTaken, Put, Request, Stored
from purgatory.delayed.storage.store import Store
from purgatory.errors import own_error

# Bytes of payloads, and requests, after which a commit takes no more. To answer them holds the loop for 5 ms.
_BYTES: Final = 1 << 23
_REQUESTS: Final = 2_000
# Notes that found no room, and are kept.
_POSTPONED: Final = 100_000

# A request, and who waits for it: a task, a message that has ended, or nobody.
_Waiting = tuple[Request, "asyncio.Future[Answer] | Message | None"]


@dataclass(eq=False, repr=False)
class Committer:
    """Hands requests to `thread`, which writes the log, and the answers to the loop.

    While a commit is under way, requests gather for the next one. The loader is told of each new message,
    before the task that has scheduled it goes on, and of each message whose end was noted. `failed` is called
    for an error other than OSError: then nobody knows what was written.
    """

    store: Store
    thread: ThreadPoolExecutor
    loader: Loader
    failed: Callable[[BaseException], None]

    def __post_init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        # A future is set when all requests before it are with the thread.
        self._requests: deque[_Waiting | asyncio.Future[None]] = deque()
        # Notes that found no room on the disk.
        self._postponed: deque[End] = deque(maxlen=_POSTPONED)
        # The next commit, and when it begins, while there is none under way.
        self._planned: asyncio.Handle | None = None
        self._begins = inf
        self._writing = False
        self._closed = False

    def submit(self, request: Request) -> asyncio.Future[Answer]:
        """Write a request with the next commit. The future gets the answer, or an exception."""
        future: asyncio.Future[Answer] = self._loop.create_future()
        self._requests.append((request, future))
        self._plan()
        return future

    def note(self, message: Message) -> None:
        """Write within 10 ms that a message was delivered. If that fails, it is written later.

        Without the note, the message is delivered again after a crash. No message is lost.
        """
        end = End(DELIVERED, message.token, message.due, message.name is not None)
        self._requests.append((end, message))
        self._plan(schedule.NOTE)

    async def seal(self) -> int:
        """End the segment of the log after all requests so far. Returns the last segment to spread."""
        before: asyncio.Future[None] = self._loop.create_future()
        self._requests.append(before)
        self._plan()
        await before
        return await self._loop.run_in_executor(self.thread, self.store.log.seal)

    async def close(self) -> None:
        """Write all that was submitted. Nothing can be submitted after that."""
        try:
            await self.seal()
        finally:
            self._closed = True
            if self._planned is not None:
                self._planned.cancel()

    def _plan(self, seconds: float = 0.0) -> None:
        """Commit in some seconds, or in the next turn, together with what other tasks of this turn submit."""
        begins = self._loop.time() + seconds
        if self._writing or self._closed or self._begins <= begins:
            return
        if self._planned is not None:
            self._planned.cancel()
        self._begins = begins
        self._planned = self._loop.call_at(begins, self._commit)

    def _commit(self) -> None:
        self._planned, self._begins = None, inf
        batch: list[_Waiting] = []
        # These come first: an id is free when the message before has ended.
        while self._postponed and len(batch) < _REQUESTS // 10:
            batch.append((self._postponed.popleft(), None))
        size = 0
        while self._requests and size < _BYTES and len(batch) < _REQUESTS:
            waiting = self._requests.popleft()
            if isinstance(waiting, asyncio.Future):
                if not waiting.done():
                    waiting.set_result(None)
            else:
                request, _ = waiting
                size += len(request.payload) if isinstance(request, Put) else 0
                batch.append(waiting)
        self._writing = True
        requests = [request for request, _ in batch]
        writing = self._loop.run_in_executor(self.thread, self.store.commit, requests)
        writing.add_done_callback(lambda done: self._written(batch, done))

    def _written(self, batch: list[_Waiting], done: asyncio.Future[list[Answer]]) -> None:
        self._writing = False
        if self._requests:
            self._plan()
        error = done.exception()
        if error is None:
            for (request, waiter), answer in zip(batch, done.result(), strict=True):
                if isinstance(request, Put) and isinstance(answer, Stored) and not answer.repeated:
                    self.loader.stored(request, answer)
                if isinstance(waiter, Message):
                    self.loader.ended(waiter)
                elif waiter is not None and not waiter.done():
                    if isinstance(answer, IdTaken):
                        waiter.set_exception(answer)
                    else:
                        waiter.set_result(answer)
            if self._postponed:
                self._plan()
            return
        error = own_error(error, "the disk")
        no_room = isinstance(error, OSError)
        if not no_room:
            self.failed(error)
        for request, waiter in batch:
            if isinstance(waiter, asyncio.Future):
                if not waiter.done():
                    # Each task raises one of its own, because raising adds to the traceback.
                    waiter.set_exception(copy(error))
            elif no_room and isinstance(request, End):
                self._postponed.append(request)
                if waiter is not None:
                    # The message can be forgotten, which makes room.
                    self.loader.ended(waiter)
        if self._postponed:
            self._plan(schedule.FULL_DISK)
