"""The sequence of snapshots of one purgatory."""

from __future__ import annotations

import asyncio
from math import inf
from typing import Final

from starlette.requests import Request

from purgatory import DelayedOperation, Purgatory
from purgatory._core.timer import clock_of
from purgatory._message_statistics import MessageStore
from purgatory._relay_statistics import Relaying
from purgatory.web.dashboard.audience import Audience
from purgatory.web.dashboard.recorder import Recorder
from purgatory.web.dashboard.snapshot import take_snapshot

INTERVAL: Final = 1.0
"""Seconds between two snapshots, whatever the number of viewers."""


class Feed:
    """Observes `shown`, one of the `purgatories`, from now on, and takes snapshots for viewers.

    `store` is the store of delayed messages whose purgatory it is, if any, and `relay` is its relay, if any.
    """

    def __init__(
        self,
        purgatories: tuple[Purgatory, ...],
        shown: Purgatory,
        store: MessageStore | None,
        relay: Relaying | None,
        audience: Audience,
    ) -> None:
        self.version = 0
        self.latest = b""
        self._purgatories = purgatories
        self._shown = shown
        self._store = store
        self._relay = relay
        self._audience = audience
        self._recorder = Recorder()
        self._due = -inf
        shown.add_observer(self._recorder)

    async def after(self, request: Request, version: int | None) -> bytes:
        """The latest snapshot in JSON, as soon as its version differs from `version`."""
        now = _now()
        if now >= self._due:
            self.take()
        elif version == self.version:
            return await self._audience.wait(request, NextSnapshot(self, self._due - now))
        return self.latest

    def take(self) -> None:
        """Take the next snapshot now."""
        now = _now()
        self.version += 1
        self._due = now + INTERVAL
        snapshot = take_snapshot(
            self.version,
            now,
            self._purgatories,
            self._shown,
            self._recorder,
            self._audience.stalls.worst(now),
            self._store,
            self._relay,
        )
        self.latest = snapshot.encoded()


class NextSnapshot(DelayedOperation[bytes]):
    """Waits until the next snapshot is due. The first of them to expire takes it for all viewers."""

    def __init__(self, feed: Feed, timeout: float) -> None:
        super().__init__(timeout)
        self._feed = feed
        self._seen = feed.version

    def try_complete(self) -> bool:
        return False

    def on_complete(self) -> bytes:
        if self._feed.version == self._seen:
            self._feed.take()
        return self._feed.latest


def _now() -> float:
    return clock_of(asyncio.get_running_loop())()
