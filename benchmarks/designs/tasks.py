"""Awaited style with asyncio and anyio: a task for each wait, an event or a future, and a timeout."""

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any

import anyio

from benchmarks.designs.alternative import Key, TaskAlternative


class WaitForEvent(TaskAlternative):
    """The code that most people write."""

    name = "asyncio.wait_for(event.wait(), t)"
    make_event: type[asyncio.Event] | type[anyio.Event] = asyncio.Event

    def event(self, key: Key) -> Any:
        event = self.buckets.get(key)
        if event is None:
            event = self.buckets[key] = self.make_event()
        return event

    async def wait(self, request: int, target: tuple[Key, ...], timeouts: Iterator[float]) -> None:
        event = self.event(target[0])
        self.tally.parked += 1
        try:
            await asyncio.wait_for(event.wait(), next(timeouts))
        except TimeoutError:
            self.tally.expire(request)
        else:
            self.tally.completed += 1

    def signal(self, keys: Sequence[Key]) -> None:
        for key in keys:
            self.buckets.pop(key).set()


class WaitFirstOfEvents(WaitForEvent):
    """Several keys, as asyncio's documentation suggests: a task for each event, and the first one wins."""

    name = "asyncio.wait over three events"

    async def wait(self, request: int, target: tuple[Key, ...], timeouts: Iterator[float]) -> None:
        tasks = [self.loop.create_task(self.event(key).wait()) for key in target]
        self.tally.parked += 1
        done, pending = await asyncio.wait(tasks, timeout=next(timeouts), return_when=asyncio.FIRST_COMPLETED)
        for task in pending:
            task.cancel()
        if done:
            self.tally.completed += 1
        else:
            self.tally.expire(request)


class MoveOnAfterEvent(WaitForEvent):
    """The code that anyio's users write: an event, and a cancel scope with a deadline."""

    name = "anyio.move_on_after + anyio.Event"
    make_event = anyio.Event

    async def wait(self, request: int, target: tuple[Key, ...], timeouts: Iterator[float]) -> None:
        event = self.event(target[0])
        self.tally.parked += 1
        with anyio.move_on_after(next(timeouts)) as scope:
            await event.wait()
        if scope.cancelled_caught:
            self.tally.expire(request)
        else:
            self.tally.completed += 1


class BareFuture(TaskAlternative):
    """The floor: a task, a future on the first key, and nothing that ever times out."""

    name = "Future, no timer"

    def add(self, key: Key) -> asyncio.Future[None]:
        future = self.loop.create_future()
        bucket = self.buckets.get(key)
        if bucket is None:
            bucket = self.buckets[key] = []
        bucket.append(future)
        return future

    def remove(self, key: Key, future: asyncio.Future[None]) -> None:
        """Remove the future after a timeout. A key that has been signalled has no bucket any more."""
        bucket = self.buckets.get(key)
        if bucket is not None:
            bucket.remove(future)
            if not bucket:
                del self.buckets[key]

    async def wait(self, request: int, target: tuple[Key, ...], timeouts: Iterator[float]) -> None:
        future = self.add(target[0])
        self.tally.parked += 1
        await future
        self.tally.completed += 1

    def signal(self, keys: Sequence[Key]) -> None:
        for key in keys:
            for future in self.buckets.pop(key):
                if not future.done():
                    future.set_result(None)


class TimeoutFuture(BareFuture):
    """The modern way, without the event."""

    name = "asyncio.timeout + Future"

    async def wait(self, request: int, target: tuple[Key, ...], timeouts: Iterator[float]) -> None:
        (key,) = target
        future = self.add(key)
        self.tally.parked += 1
        try:
            async with asyncio.timeout(next(timeouts)):
                await future
        except TimeoutError:
            self.remove(key, future)
            self.tally.expire(request)
        else:
            self.tally.completed += 1


class CallLaterFuture(BareFuture):
    """The cheapest code with asyncio's own parts."""

    name = "Future + call_later"
    most = None

    async def wait(self, request: int, target: tuple[Key, ...], timeouts: Iterator[float]) -> None:
        (key,) = target
        future = self.add(key)
        handle = self.loop.call_later(next(timeouts), self._expire, key, future)
        self.tally.parked += 1
        try:
            await future
        except TimeoutError:
            self.tally.expire(request)
        else:
            self.tally.completed += 1
        finally:
            handle.cancel()

    def _expire(self, key: Key, future: asyncio.Future[None]) -> None:
        if not future.done():
            self.remove(key, future)
            future.set_exception(TimeoutError())


class SharedFuture(BareFuture):
    """Several keys by hand: one future in the lists of all of them."""

    name = "Future in each list + call_later"
    most = None

    async def wait(self, request: int, target: tuple[Key, ...], timeouts: Iterator[float]) -> None:
        buckets = self.buckets
        future = self.loop.create_future()
        for key in target:
            bucket = buckets.get(key)
            if bucket is None:
                bucket = buckets[key] = []
            bucket.append(future)
        handle = self.loop.call_later(next(timeouts), self._time_out, future)
        self.tally.parked += 1
        try:
            await future
        except TimeoutError:
            self.tally.expire(request)
        else:
            self.tally.completed += 1
        finally:
            handle.cancel()
            for key in target:
                bucket = buckets[key]
                bucket.remove(future)
                if not bucket:
                    del buckets[key]

    def _time_out(self, future: asyncio.Future[None]) -> None:
        if not future.done():
            future.set_exception(TimeoutError())

    def signal(self, keys: Sequence[Key]) -> None:
        for key in keys:
            for future in self.buckets.get(key, ()):
                if not future.done():
                    future.set_result(None)
