"""The figures of a purgatory: fields of `PurgatoryStatistics`."""

from __future__ import annotations

from typing import Any, Final

from purgatory import DelayedOperation
from purgatory._figures.figure import Figure, Metric

_OPERATION: Final = "{operation}"

ENDED_OPERATIONS: Final = Metric(
    "purgatory_operations", "Operations that have ended.", "purgatory.operations", _OPERATION, counter=True
)
"""The metric of all outcomes, with a label `outcome`."""

WAITS: Final = Metric(
    "purgatory_wait_seconds",
    "Time from offering an operation until its hooks had run.",
    "purgatory.operation.duration",
    "s",
)
"""A histogram, with a label `outcome`."""

LATENESS: Final = Metric(
    "purgatory_lateness_seconds",
    "Time from the deadline of an expired operation until its hooks had run.",
    "purgatory.operation.lateness",
    "s",
)
"""A histogram."""

FIGURES: Final = (
    Figure(
        "pending",
        "Pending",
        Metric("purgatory_pending", "Operations that wait.", "purgatory.operation.pending", _OPERATION),
    ),
    Figure(
        "max_pending",
        "Limit",
        Metric(
            "purgatory_max_pending",
            "The most operations that may wait at once, if there is a limit.",
            "purgatory.operation.limit",
            _OPERATION,
        ),
    ),
    Figure(
        "watched",
        "Watched",
        Metric(
            "purgatory_watched",
            "Pairs of a waiting operation and a key it watches.",
            "purgatory.watcher.count",
            "{watcher}",
        ),
    ),
    Figure(
        "keys",
        "Keys",
        Metric("purgatory_keys", "Keys that at least one operation watches.", "purgatory.key.count", "{key}"),
    ),
    Figure("completed", "Completed", ENDED_OPERATIONS, "Operations whose condition held."),
    Figure(
        "expired",
        "Expired",
        ENDED_OPERATIONS,
        "Operations that ended at their timeout, or when the purgatory closed.",
    ),
    Figure(
        "expired_untried",
        "Expired untried",
        Metric(
            "purgatory_expired_untried",
            "Operations that expired by their timeout, and that no check had tried.",
            "purgatory.operation.expired_untried",
            _OPERATION,
            counter=True,
        ),
        "Operations that expired by their timeout, and that no check had tried. If there are many, perhaps "
        "nobody checks their keys, or somebody checks the keys before the change.",
    ),
    Figure(
        "missed_changes",
        "Missed changes",
        Metric(
            "purgatory_missed_changes",
            "Operations that expired although their condition held. Only debug mode looks for them.",
            "purgatory.operation.missed_changes",
            _OPERATION,
            counter=True,
        ),
    ),
    Figure("cancelled", "Cancelled", ENDED_OPERATIONS, "Operations that were withdrawn."),
    Figure("failed", "Failed", ENDED_OPERATIONS, "Operations that an exception in one of their hooks ended."),
    Figure(
        "refused",
        "Refused",
        Metric(
            "purgatory_refused",
            "Operations that were refused because the purgatory was full.",
            "purgatory.operation.refused",
            _OPERATION,
            counter=True,
        ),
    ),
    Figure(
        "wakeups",
        "Wake-ups",
        Metric(
            "purgatory_timer_wakeups",
            "Wake-ups of the reaper by the event loop's timer.",
            "purgatory.timer.wakeups",
            "{wakeup}",
            counter=True,
        ),
    ),
    Figure(
        "slices",
        "Slices",
        Metric(
            "purgatory_slices",
            "Pauses of bulk work because its time slice was over.",
            "purgatory.slices",
            "{slice}",
            counter=True,
        ),
    ),
)
"""One figure for each field, in the order of the dashboard."""


def lateness(operation: DelayedOperation[Any], ended: float) -> float | None:
    """How long after its deadline an operation expired, in seconds.

    None for an operation that closing ended, and for one that was tried only, with a timeout of zero.
    """
    deadline = operation.deadline
    return ended - deadline if deadline is not None and ended >= deadline else None
