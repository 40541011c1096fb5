"""The sequence of snapshots of one purgatory."""

from __future__ import annotations

import asyncio
from math import inf
from typing import Final

from starlette.requests import Request

from purgatory import DelayedOperation, Purgatory
from purgatory._core.timer import clock_of
from purgatory._figures.messages import MessageStore
from purgatory._figures.relay import Relaying
from purgatory.web.dashboard.audience import Audience
from purgatory.web.dashboard.recorder import Recorder
from purgatory.web.dashboard.search import Search
from purgatory.web.dashboard.snapshot import take_snapshot, with_found

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
        self.version = ""
        self._latest = b""
        # The latest snapshot with what each search has found in the purgatory since.
        self._answers: dict[Search, bytes] = {}
        self._taken = 0
        self._purgatories = purgatories
        self._shown = shown
        self._store = store
        self._relay = relay
        self._audience = audience
        self._recorder = Recorder()
        self._due = -inf
        shown.add_observer(self._recorder)

    async def after(self, request: Request, version: str | None, search: Search | None) -> bytes:
        """The latest snapshot in JSON, as soon as its version is not `version`, with what `search` finds."""
        now = _now()
        if now >= self._due:
            self.take()
        elif version == self.version:
            await self._audience.wait(request, NextSnapshot(self, self._due - now))
        return self._latest if search is None else self._answer(search)

    def take(self) -> None:
        """Take the next snapshot now."""
        now = _now()
        self._taken += 1
        self._due = now + INTERVAL
        self._answers.clear()
        snapshot = take_snapshot(
            self._taken,
            now,
            self._purgatories,
            self._shown,
            self._recorder,
            self._audience.stalls.worst(now),
            self._store,
            self._relay,
        )
        self.version = snapshot.version
        self._latest = snapshot.encoded()

    def _answer(self, search: Search) -> bytes:
        if search not in self._answers:
            found = search.run(self._shown, self._recorder, _now())
            self._answers[search] = with_found(self._latest, found)
        return self._answers[search]


class NextSnapshot(DelayedOperation[None]):
    """Waits until the next snapshot is due. The first that expires takes the snapshot for all viewers."""

    def __init__(self, feed: Feed, timeout: float) -> None:
        super().__init__(timeout)
        self._feed = feed
        self._seen = feed.version

    def try_complete(self) -> bool:
        return False

    def on_complete(self) -> None:
        if self._feed.version == self._seen:
            self._feed.take()


def _now() -> float:
    return clock_of(asyncio.get_running_loop())()
