"""The sequence of snapshots of one purgatory."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from math import inf
from typing import Final

from starlette.requests import Request

from purgatory import DelayedOperation
from purgatory._core.timer import clock_of
from purgatory._figures.stall import StallProbe
from purgatory.web.dashboard.audience import Audience
from purgatory.web.dashboard.search import Search
from purgatory.web.dashboard.shown import Shown
from purgatory.web.dashboard.snapshot import take_snapshot, with_found

INTERVAL: Final = 1.0
"""Seconds between two snapshots, whatever the number of viewers."""

LINGER: Final = 10.0
"""Seconds for which the loop is measured after a viewer has looked.

Where several processes answer at one address, a viewer looks at each of them every few seconds.
"""


class Feed:
    """Takes snapshots of `shown`, one of `everything` on the dashboard, for its viewers.

    `stalls` measures the loop of all purgatories.
    """

    def __init__(
        self, everything: Sequence[Shown], shown: Shown, audience: Audience, stalls: StallProbe
    ) -> None:
        self.version = ""
        self._latest = b""
        # The latest snapshot with what each search has found in the purgatory since.
        self._answers: dict[Search, bytes] = {}
        self._taken = 0
        self._everything = everything
        self._shown = shown
        self._audience = audience
        self._stalls = stalls
        self._due = -inf

    async def after(self, request: Request, version: str | None, search: Search | None) -> bytes:
        """The latest snapshot in JSON, as soon as its version is not `version`, with what `search` finds."""
        now = _now()
        self._stalls.look(now)
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
        snapshot = take_snapshot(self._taken, now, self._everything, self._shown, self._stalls.worst(now))
        self.version = snapshot.version
        self._latest = snapshot.encoded()

    def _answer(self, search: Search) -> bytes:
        if search not in self._answers:
            found = search.run(self._shown.purgatory, self._shown.recorder, _now())
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
