"""All that the page shows of one purgatory at one moment."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from typing import Any

from purgatory import Purgatory, PurgatoryStatistics
from purgatory.web.dashboard.pending_sample import PendingSample, look_around
from purgatory.web.dashboard.recorder import FailedOperation, Rates, Recorder
from purgatory.web.dashboard.wheel import WheelPicture, draw


@dataclass(frozen=True, slots=True)
class Tab:
    """A purgatory among those that the dashboard shows."""

    name: str
    pending: int


@dataclass(frozen=True, slots=True)
class Snapshot:
    """`now` is in seconds of the loop's time, as is when something failed; see the parts for theirs."""

    version: int
    now: float
    tabs: list[Tab]
    statistics: PurgatoryStatistics
    wheel: WheelPicture
    rates: Rates
    waits: list[int]
    lateness: list[int]
    stalls: list[float | None]
    pending_sample: PendingSample
    failures: list[FailedOperation]

    def encoded(self) -> bytes:
        """In JSON. Half of a surrogate pair is escaped, as is all that is not ASCII."""
        return json.dumps(self, default=_by_name, separators=(",", ":")).encode()


def take(
    version: int,
    now: float,
    purgatories: tuple[Purgatory, ...],
    shown: Purgatory,
    recorder: Recorder,
    stalls: list[float | None],
) -> Snapshot:
    """The snapshot of the purgatory `shown`, which `recorder` observes: a few milliseconds, however full."""
    return Snapshot(
        version=version,
        now=now,
        tabs=[Tab(each.name, each.statistics().pending) for each in purgatories],
        statistics=shown.statistics(),
        wheel=draw(shown.timer, now),
        rates=recorder.rates(now),
        waits=recorder.waits(now),
        lateness=recorder.lateness(now),
        stalls=stalls,
        pending_sample=look_around(shown, recorder.busiest_keys(now), now),
        failures=recorder.failures(),
    )


def _by_name(value: Any) -> dict[str, Any]:
    return {field.name: getattr(value, field.name) for field in fields(value)}
