"""Group commit: those who wait at the same time share a sync."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from typing import Final

from purgatory.delayed.errors import IdTaken
from purgatory.delayed.store import Answer, End, Put, Request, Store, Stored

# Bytes of payloads, and requests, after which a commit takes no more.
_BYTES: Final = 1 << 23
_REQUESTS: Final = 10_000
# Seconds that requests may wait that nobody waits for.
_LAZY: Final = 0.01


class Committer:
    """Hands requests to `thread`, which writes the log, and the answers to the loop.

    While a commit is under way, requests gather for the next one. `stored` is called for each new message,
    before the task that has scheduled it goes on. `failed` is called for an error other than OSError: then
    nobody knows what was written.
    """

    def __init__(
        self,
        store: Store,
        thread: ThreadPoolExecutor,
        stored: Callable[[Put, Stored], None],
        failed: Callable[[BaseException], None],
    ) -> None:
        self._store = store
        self._stored = stored
        self._failed = failed
        self._loop = asyncio.get_running_loop()
        self._thread = thread
        self._requests: deque[tuple[Request, asyncio.Future[Answer] | None]] = deque()
        self._seals: list[asyncio.Future[int]] = []
        # The next commit, while there is none under way.
        self._planned: asyncio.Handle | None = None
        self._lazy: asyncio.TimerHandle | None = None
        self._writing = False

    def submit(self, request: Request) -> asyncio.Future[Answer]:
        """Write a request with the next commit. The future gets the answer, or an exception."""
        future: asyncio.Future[Answer] = self._loop.create_future()
        self._requests.append((request, future))
        self._plan()
        return future

    def note(self, end: End) -> None:
        """Write a request that nobody waits for, within 10 ms. It is dropped if it cannot be written.

        Without it a message is delivered again after a crash, and no message is lost.
        """
        self._requests.append((end, None))
        if self._planned is None and self._lazy is None and not self._writing:
            self._lazy = self._loop.call_later(_LAZY, self._commit)

    async def seal(self) -> int:
        """End the segment of the log behind all requests so far. Returns the last segment to spread."""
        future: asyncio.Future[int] = self._loop.create_future()
        self._seals.append(future)
        self._plan()
        return await future

    def _plan(self) -> None:
        """Commit in the next turn of the loop, together with what other tasks of this turn submit."""
        if self._planned is None and not self._writing:
            self._planned = self._loop.call_soon(self._commit)

    def _commit(self) -> None:
        for handle in (self._planned, self._lazy):
            if handle is not None:
                handle.cancel()
        self._planned = self._lazy = None
        batch: list[tuple[Request, asyncio.Future[Answer] | None]] = []
        size = 0
        while self._requests and size < _BYTES and len(batch) < _REQUESTS:
            request, future = self._requests.popleft()
            size += len(request.payload) if isinstance(request, Put) else 0
            batch.append((request, future))
        seals: list[asyncio.Future[int]] = []
        if not self._requests:
            seals, self._seals = self._seals, seals
        self._writing = True
        self._loop.run_in_executor(
            self._thread, self._write, [request for request, _ in batch], bool(seals)
        ).add_done_callback(lambda done: self._written(batch, seals, done))

    def _write(self, requests: list[Request], seal: bool) -> tuple[list[Answer] | BaseException, int]:
        """What the thread does."""
        answers: list[Answer] | BaseException
        try:
            answers = self._store.commit(requests)
        except BaseException as error:
            answers = error
        return answers, self._store.seal() if seal else 0

    def _written(
        self,
        batch: list[tuple[Request, asyncio.Future[Answer] | None]],
        seals: list[asyncio.Future[int]],
        done: asyncio.Future[tuple[list[Answer] | BaseException, int]],
    ) -> None:
        self._writing = False
        if self._requests or self._seals:
            self._plan()
        answers, sealed = done.result()
        if isinstance(answers, list):
            for (request, future), answer in zip(batch, answers, strict=True):
                if isinstance(request, Put) and isinstance(answer, Stored) and not answer.repeated:
                    self._stored(request, answer)
                if future is not None and not future.done():
                    if isinstance(answer, IdTaken):
                        future.set_exception(answer)
                    else:
                        future.set_result(answer)
        else:
            if not isinstance(answers, OSError):
                self._failed(answers)
            for _, future in batch:
                if future is not None and not future.done():
                    # Each task raises one of its own, because raising adds to the traceback.
                    future.set_exception(copy(answers))
        for waiter in seals:
            if not waiter.done():
                waiter.set_result(sealed)
