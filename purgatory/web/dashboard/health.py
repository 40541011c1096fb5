"""Whether a purgatory is well, in the few figures that an operator is woken for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from purgatory._figures.relay import Relaying
from purgatory.web.dashboard.shown import Shown

NEARLY_FULL: Final = 0.8
"""The share of `max_pending` from which a purgatory is nearly full."""


@dataclass(frozen=True, slots=True)
class Health:
    """What the head of the page says of one purgatory. A purgatory is well when nothing here is an alarm."""

    name: str
    pending: int
    # "", "nearly full" or "full".
    fullness: str
    # Operations that were refused in the last `refused_in` seconds. These are about 60. They are more when
    # nothing has ended and nobody has looked for longer.
    refused: int
    refused_in: float
    # Operations that failed in the last minute.
    failed: int
    # Operations that expired although their condition held, since the start.
    missed: int
    # False when the relay does not hear the signals of other processes. None without a relay.
    connected: bool | None


def health_of(shown: Shown, now: float) -> Health:
    """The health of a purgatory at the loop's time `now`."""
    purgatory, recorder = shown.purgatory, shown.recorder
    statistics = purgatory.statistics()
    refused, since = recorder.refusals(now)
    return Health(
        name=purgatory.name,
        pending=statistics.pending,
        fullness=_fullness(statistics.pending, statistics.max_pending),
        refused=refused,
        refused_in=now - max(since, purgatory.timer.origin),
        failed=sum(recorder.rates(now).ended["failed"]),
        missed=statistics.missed_changes,
        connected=_connected(shown.relay),
    )


def _fullness(pending: int, limit: int | None) -> str:
    if limit is None or pending < NEARLY_FULL * limit:
        return ""
    return "nearly full" if pending < limit else "full"


def _connected(relay: Relaying | None) -> bool | None:
    return None if relay is None else relay.statistics().connected
