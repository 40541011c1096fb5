"""What a store of delayed messages counts, and where each figure is shown.

It is not in `purgatory.delayed`, so that metrics and dashboard also work where there is no such store.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from purgatory._statistics import Figure, Metric

if TYPE_CHECKING:
    from purgatory.purgatory import Purgatory


class MessageStatistics(Protocol):
    """The counts of a `DelayedMessages`."""

    @property
    def scheduled(self) -> int: ...

    @property
    def delivered(self) -> int: ...

    @property
    def cancelled(self) -> int: ...

    @property
    def failures(self) -> int: ...

    @property
    def dead(self) -> int: ...

    @property
    def retrying(self) -> int: ...

    @property
    def waiting(self) -> int: ...

    @property
    def lag_seconds(self) -> float: ...

    @property
    def log_bytes(self) -> int: ...

    @property
    def slot_bytes(self) -> int: ...

    @property
    def failed(self) -> int: ...


class MessageStore(Protocol):
    """A store of delayed messages, such as `purgatory.delayed.DelayedMessages`."""

    @property
    def purgatory(self) -> Purgatory: ...

    def statistics(self) -> MessageStatistics:
        """Raises PurgatoryNotOpen before the store was opened."""
        raise NotImplementedError


def _counter(field: str, title: str, help: str) -> Figure:
    return Figure(field, title, Metric(f"purgatory_delayed_{field}", help, counter=True))


MESSAGE_FIGURES: Final = (
    _counter("scheduled", "Scheduled", "Messages that were scheduled."),
    _counter("delivered", "Delivered", "Messages that were delivered."),
    _counter("cancelled", "Cancelled", "Messages that were cancelled."),
    _counter("failures", "Failed attempts", "Attempts to deliver that failed."),
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
        Metric("purgatory_delayed_lag_seconds", "How long the first of them has been due."),
    ),
    _counter("log_bytes", "Bytes to the log", "Bytes written to the log."),
    _counter("slot_bytes", "Bytes to slot files", "Bytes written to the slot files."),
    Figure("failed", "Failed", Metric("purgatory_delayed_failed", "1 when the store has failed, else 0.")),
)
"""One for each field, in the order of the dashboard."""
