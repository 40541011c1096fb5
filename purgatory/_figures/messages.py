"""The figures of a store of delayed messages: fields of `DelayedStatistics`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from purgatory._figures.figure import Figure, Metric

if TYPE_CHECKING:
    from purgatory.delayed.statistics import DelayedStatistics
    from purgatory.purgatory import Purgatory


class MessageStore(Protocol):
    """A store of delayed messages, such as `purgatory.delayed.DelayedMessages`."""

    @property
    def purgatory(self) -> Purgatory: ...

    def statistics(self) -> DelayedStatistics:
        """Return the statistics. Raises PurgatoryNotOpen if the store has never been opened."""
        raise NotImplementedError


def _counter(field: str, title: str, help: str) -> Figure:
    return Figure(field, title, Metric(f"purgatory_delayed_{field}", help, counter=True))


MESSAGE_FIGURES: Final = (
    _counter("scheduled", "Scheduled", "Messages that were scheduled."),
    _counter("delivered", "Delivered", "Messages that were delivered."),
    _counter("cancelled", "Cancelled", "Messages that were cancelled."),
    _counter("failures", "Failed attempts", "Failed attempts to deliver a message."),
    _counter("dead", "Dead letters", "Messages that went to the dead letters."),
    Figure(
        "retrying",
        "Retrying",
        Metric("purgatory_delayed_retrying", "Messages that wait for another attempt."),
    ),
    Figure(
        "waiting",
        "Waiting for a worker",
        Metric("purgatory_delayed_waiting", "Messages that are due and wait for a worker."),
    ),
    Figure(
        "lag_seconds",
        "Lag in seconds",
        Metric("purgatory_delayed_lag_seconds", "How long the first waiting message has been due."),
    ),
    _counter("log_bytes", "Bytes to the log", "Bytes written to the log."),
    _counter("slot_bytes", "Bytes to slot files", "Bytes written to the slot files."),
    Figure("failed", "Failed", Metric("purgatory_delayed_failed", "1 when the store has failed, else 0.")),
)
"""One figure for each field, in the order of the dashboard."""
