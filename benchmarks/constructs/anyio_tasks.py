"""Awaited style with anyio: a task each, an event, and a cancel scope with a deadline."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import anyio

from benchmarks.constructs.construct import Key, Tally, TaskConstruct


class MoveOnAfterEvent(TaskConstruct):
    """The one that anyio's users write."""

    name = "anyio.move_on_after + anyio.Event"

    def __init__(self, tally: Tally) -> None:
        super().__init__(tally)
        self._events: dict[Key, anyio.Event] = {}

    async def wait(self, request: int, target: tuple[Key, ...], timeouts: Iterator[float]) -> None:
        (key,) = target
        event = self._events.get(key)
        if event is None:
            event = self._events[key] = anyio.Event()
        self.tally.parked += 1
        with anyio.move_on_after(next(timeouts)) as scope:
            await event.wait()
        if scope.cancelled_caught:
            self.tally.expire(request)
        else:
            self.tally.completed += 1

    def signal(self, keys: Sequence[Key]) -> None:
        for key in keys:
            self._events.pop(key).set()
