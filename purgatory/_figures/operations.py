"""The figures of a purgatory: fields of `PurgatoryStatistics`."""

from __future__ import annotations

from typing import Final

from purgatory._figures.figure import Figure, Metric

OPERATIONS: Final = Metric("purgatory_operations", "Operations that have ended.", counter=True)
"""The metric of all outcomes, with a label `outcome`."""

FIGURES: Final = (
    Figure("pending", "Pending", Metric("purgatory_pending", "Operations that wait.")),
    Figure(
        "max_pending",
        "Limit",
        Metric("purgatory_max_pending", "The most operations that may wait at once, if there is a limit."),
    ),
    Figure(
        "watched",
        "Watched",
        Metric("purgatory_watched", "Pairs of a waiting operation and a key it watches."),
    ),
    Figure("keys", "Keys", Metric("purgatory_keys", "Keys that at least one operation watches.")),
    Figure("completed", "Completed", OPERATIONS, "Operations whose condition held."),
    Figure(
        "expired",
        "Expired",
        OPERATIONS,
        "Operations that ended at their timeout, or when the purgatory closed.",
    ),
    Figure(
        "expired_untried",
        "Expired untried",
        Metric(
            "purgatory_expired_untried",
            "Operations that expired by their timeout, and that no check had tried.",
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
            counter=True,
        ),
    ),
    Figure("cancelled", "Cancelled", OPERATIONS, "Operations that were withdrawn."),
    Figure("failed", "Failed", OPERATIONS, "Operations that an exception in one of their hooks ended."),
    Figure(
        "refused",
        "Refused",
        Metric(
            "purgatory_refused",
            "Operations that were refused because the purgatory was full.",
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
"""One figure for each field, in the order of the dashboard."""
