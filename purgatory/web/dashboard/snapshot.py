"""What the page shows of one purgatory at one moment."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from purgatory import PurgatoryStatistics
from purgatory._figures.histogram import Histogram
from purgatory._figures.messages import MESSAGE_FIGURES, MessageStore
from purgatory._figures.relay import RELAY_FIGURES, Relaying
from purgatory.errors import PurgatoryNotOpen
from purgatory.web.dashboard.failure_log import EqualFailures
from purgatory.web.dashboard.health import Health, health_of
from purgatory.web.dashboard.pending_sample import PendingSample, sample_pending
from purgatory.web.dashboard.process import Process, this_process
from purgatory.web.dashboard.recorder import Rates
from purgatory.web.dashboard.search import Found
from purgatory.web.dashboard.shown import Shown
from purgatory.web.dashboard.wheel import WheelPicture, picture_wheel


@dataclass(frozen=True, slots=True)
class HistogramPicture:
    """A histogram of the last minute, with two quantiles. A quantile above all bounds is None."""

    bounds: Sequence[float]
    counts: list[int]
    median: float | None
    percentile_99: float | None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All data of the page. `now` and the times of operations are in seconds of the loop's time."""

    version: str
    name: str
    process: Process
    now: float
    # The same moment, in seconds since 1970.
    time: float
    # Since when the totals count, in seconds of the loop's time. None before the purgatory is open.
    since: float | None
    # The shown purgatory is one of them.
    health: list[Health]
    statistics: PurgatoryStatistics
    wheel: WheelPicture
    rates: Rates
    # By outcome. They have the bounds of the metrics.
    waits: dict[str, HistogramPicture]
    lateness: HistogramPicture
    stalls: list[float | None]
    pending_sample: PendingSample
    failures: list[EqualFailures]
    # Titles and figures of the store of delayed messages. Empty without a store, and before it is open.
    messages: list[tuple[str, float]]
    # Titles and figures of the relay. Empty without a relay. A figure that is not known yet is None.
    relay: list[tuple[str, bool | float | None]]

    def encoded(self) -> bytes:
        """The snapshot in JSON."""
        return _json(self)


def with_found(snapshot: bytes, found: Found) -> bytes:
    """The encoded `snapshot`, and what a search of one viewer has found."""
    return snapshot[:-1] + b',"found":' + _json(found) + b"}"


def take_snapshot(
    number: int,
    now: float,
    everything: Sequence[Shown],
    shown: Shown,
    stalls: list[float | None],
) -> Snapshot:
    """The snapshot of `shown`, one of `everything`. It takes a few milliseconds, however many wait.

    `number` is its number in this process. Snapshots of two processes have different versions.
    """
    process = this_process()
    purgatory, recorder = shown.purgatory, shown.recorder
    return Snapshot(
        version=f"{process.instance}.{number}",
        name=purgatory.name,
        process=process,
        now=now,
        time=time.time(),
        since=purgatory.timer.origin or None,
        health=[health_of(each, now) for each in everything],
        statistics=purgatory.statistics(),
        wheel=picture_wheel(purgatory.timer, now),
        rates=recorder.rates(now),
        waits={outcome: picture_histogram(waits) for outcome, waits in recorder.waits(now).items()},
        lateness=picture_histogram(recorder.lateness(now)),
        stalls=stalls,
        pending_sample=sample_pending(purgatory, recorder.busy_keys(now), now),
        failures=recorder.failures.latest(),
        messages=[] if shown.store is None else count_messages(shown.store),
        relay=[] if shown.relay is None else relay_figures(shown.relay),
    )


def count_messages(store: MessageStore) -> list[tuple[str, float]]:
    try:
        statistics = store.statistics()
    except PurgatoryNotOpen:
        return []
    return [(figure.title, getattr(statistics, figure.field)) for figure in MESSAGE_FIGURES]


def relay_figures(relay: Relaying) -> list[tuple[str, bool | float | None]]:
    statistics = relay.statistics()
    return [(figure.title, getattr(statistics, figure.field)) for figure in RELAY_FIGURES]


def picture_histogram(histogram: Histogram) -> HistogramPicture:
    return HistogramPicture(
        bounds=histogram.bounds,
        counts=histogram.counts,
        median=histogram.quantile(0.5),
        percentile_99=histogram.quantile(0.99),
    )


def _json(value: object) -> bytes:
    """Characters beyond ASCII are escaped, as is half of a surrogate pair."""
    return json.dumps(value, default=_by_name, separators=(",", ":")).encode()


def _by_name(value: Any) -> dict[str, Any]:
    return {field.name: getattr(value, field.name) for field in fields(value)}
