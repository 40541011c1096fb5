"""What a purgatory counts, and where each figure is shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class PurgatoryStatistics:
    """A purgatory's figures at one moment. Reading them costs O(1)."""

    pending: int
    """Operations that wait now."""
    max_pending: int | None
    """Operations that may wait. None when there is no limit."""
    watched: int
    """Operation-key pairs on the watch lists now: an operation on three keys counts three times."""
    keys: int
    """Keys that at least one operation watches now."""
    completed: int
    """Operations whose condition held, since the start."""
    expired: int
    """Operations that their timeout, or closing, ended."""
    cancelled: int
    """Operations that were withdrawn."""
    failed: int
    """Operations that an exception in one of their hooks ended."""
    refused: int
    """Operations that had to wait, and were refused with PurgatoryFull."""
    wakeups: int
    """How often the event loop's timer has woken the reaper."""
    slices: int
    """How often bulk work (expiring, sweeping, closing) has paused because its time slice was over."""


OUTCOMES: Final = ("completed", "expired", "cancelled", "failed")
"""The ways in which an operation ends: values of `OperationState`, and fields of `PurgatoryStatistics`."""


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric of Prometheus, without the suffix that its kind adds to the name."""

    name: str
    help: str
    counter: bool = False


@dataclass(frozen=True, slots=True)
class Figure:
    """Where a field of `PurgatoryStatistics` is shown: its title on the dashboard, and its metric.

    The figures of the outcomes share one metric, which has a label `outcome`. So they have a `help` of their
    own for the dashboard.
    """

    field: str
    title: str
    metric: Metric
    help: str = ""

    @property
    def explanation(self) -> str:
        """What the figure means, for the dashboard."""
        return self.help or self.metric.help


OPERATIONS: Final = Metric("purgatory_operations", "Operations that have ended.", counter=True)

FIGURES: Final = (
    Figure("pending", "Pending", Metric("purgatory_pending", "Operations that wait.")),
    Figure(
        "max_pending",
        "Limit",
        Metric("purgatory_max_pending", "Operations that may wait, of a purgatory with a limit."),
    ),
    Figure(
        "watched",
        "Watched",
        Metric("purgatory_watched", "Pairs of a waiting operation and a key it watches."),
    ),
    Figure("keys", "Keys", Metric("purgatory_keys", "Keys that at least one operation watches.")),
    Figure("completed", "Completed", OPERATIONS, "Operations whose condition held."),
    Figure("expired", "Expired", OPERATIONS, "Operations that their timeout, or closing, ended."),
    Figure("cancelled", "Cancelled", OPERATIONS, "Operations that were withdrawn."),
    Figure("failed", "Failed", OPERATIONS, "Operations that an exception in one of their hooks ended."),
    Figure(
        "refused",
        "Refused",
        Metric(
            "purgatory_refused",
            "Operations that were refused, because as many as may wait did.",
            counter=True,
        ),
    ),
    Figure(
        "wakeups",
        "Wake-ups",
        Metric("purgatory_timer_wakeups", "Wake-ups of the reaper by the event loop's timer.", counter=True),
    ),
    Figure(
        "slices",
        "Slices",
        Metric("purgatory_slices", "Pauses of bulk work because its time slice was over.", counter=True),
    ),
)
"""One for each field, in the order of the dashboard."""
