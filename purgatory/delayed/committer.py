"""Group commit: calls that wait at the same time share a sync."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeVar, TypeVarTuple

from purgatory.delayed import schedule
from purgatory.delayed.loader import Loader
from purgatory.delayed.message import Message
from purgatory.delayed.storage.frames import DELIVERED
from purgatory.delayed.storage.requests import Answer, End, IdTaken, Put, Request, Stored
from purgatory.delayed.storage.store import Store
from purgatory.errors import own_error

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

# Bytes of payloads, and requests, after which a commit takes no more. To answer them holds the loop for 5 ms.
_BYTES: Final = 1 << 23
_REQUESTS: Final = 2_000
# Notes that found no room, and are kept.
_POSTPONED: Final = 100_000

# A request, and who waits for it: a task, a message that has ended, or nobody.
_Waiting = tuple[Request, "asyncio.Future[Answer] | Message | None"]
# The end of a segment, and the task that waits for it.
_Seal = asyncio.Future[int]
# The answers and the last segment, or why there is none.
_Written = tuple[list[Answer] | BaseException, int | BaseException]


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
        self._requests: deque[_Waiting | _Seal] = deque()
        # Notes that found no room on the disk.
        self._postponed: deque[End] = deque(maxlen=_POSTPONED)
        # The next commit, while there is none under way, and whether it is in the next turn of the loop.
        self._planned: asyncio.Handle | None = None
        self._is_next = False
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

    def seal(self) -> asyncio.Future[int]:
        """End the segment of the log after all requests so far. Returns the last segment to spread."""
        future: asyncio.Future[int] = self._loop.create_future()
        self._requests.append(future)
        self._plan()
        return future

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
        if self._writing or self._closed or self._is_next or (seconds and self._planned is not None):
            return
        if self._planned is not None:
            self._planned.cancel()
        self._is_next = not seconds
        call = self._loop.call_soon if self._is_next else partial(self._loop.call_later, seconds)
        self._planned = call(self._commit)

    def _commit(self) -> None:
        self._planned, self._is_next = None, False
        batch: list[_Waiting] = []
        # These come first: an id is free when the message before has ended.
        while self._postponed and len(batch) < _REQUESTS // 10:
            batch.append((self._postponed.popleft(), None))
        size = 0
        seal: _Seal | None = None
        while self._requests and seal is None and size < _BYTES and len(batch) < _REQUESTS:
            waiting = self._requests.popleft()
            if isinstance(waiting, asyncio.Future):
                # Later requests go to the next segment. Otherwise a busy log would never be sealed.
                seal = waiting
            else:
                request, _ = waiting
                size += len(request.payload) if isinstance(request, Put) else 0
                batch.append(waiting)
        self._writing = True
        self._loop.run_in_executor(
            self.thread, self._write, [request for request, _ in batch], seal is not None
        ).add_done_callback(lambda done: self._written(batch, seal, done))

    def _write(self, requests: list[Request], seal: bool) -> _Written:
        return _outcome(self.store.commit, requests), _outcome(self.store.log.seal) if seal else 0

    def _written(self, batch: list[_Waiting], seal: _Seal | None, done: asyncio.Future[_Written]) -> None:
        self._writing = False
        if self._requests:
            self._plan()
        answers, sealed = done.result()
        if isinstance(answers, list):
            for (request, waiter), answer in zip(batch, answers, strict=True):
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
        else:
            if isinstance(answers, OSError):
                self._postpone(batch)
            else:
                self.failed(answers)
            for _, waiter in batch:
                if isinstance(waiter, asyncio.Future) and not waiter.done():
                    # Each task raises one of its own, because raising adds to the traceback.
                    waiter.set_exception(copy(answers))
        if seal is not None and not seal.done():
            if isinstance(sealed, BaseException):
                seal.set_exception(sealed)
            else:
                seal.set_result(sealed)

    def _postpone(self, batch: list[_Waiting]) -> None:
        """Keep the notes of a batch that found no room. Their messages can be forgotten, which makes room."""
        for request, waiter in batch:
            if isinstance(waiter, Message):
                self.loader.ended(waiter)
            if isinstance(request, End) and not isinstance(waiter, asyncio.Future):
                self._postponed.append(request)
        if self._postponed:
            self._plan(schedule.FULL_DISK)


def _outcome(call: Callable[[*Ts], T], *arguments: *Ts) -> T | BaseException:
    try:
        return call(*arguments)
    except BaseException as error:
        return own_error(error, "the disk")
