"""The figures of a store of delayed messages: fields of `DelayedStatistics`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from purgatory._figures.figure import Figure, Metric

if TYPE_CHECKING:
    from purgatory.delayed.open_store import DelayedStatistics
    from purgatory.purgatory import Purgatory


class MessageStore(Protocol):
    """A store of delayed messages, such as `purgatory.delayed.DelayedMessages`."""

    @property
    def purgatory(self) -> Purgatory: ...

    def statistics(self) -> DelayedStatistics:
        """Return the statistics. Raises PurgatoryNotOpen if the store has never been opened."""
        raise NotImplementedError


def _counter(field: str, title: str, help: str, instrument: str, unit: str) -> Figure:
    metric = Metric(f"purgatory_delayed_{field}", help, f"purgatory.delayed.{instrument}", unit, counter=True)
    return Figure(field, title, metric)


def _gauge(field: str, title: str, help: str, instrument: str, unit: str) -> Figure:
    metric = Metric(f"purgatory_delayed_{field}", help, f"purgatory.delayed.{instrument}", unit)
    return Figure(field, title, metric)


MESSAGE_FIGURES: Final = (
    _counter("scheduled", "Scheduled", "Messages that were scheduled.", "message.scheduled", "{message}"),
    _counter("delivered", "Delivered", "Messages that were delivered.", "message.delivered", "{message}"),
    _counter("cancelled", "Cancelled", "Messages that were cancelled.", "message.cancelled", "{message}"),
    _counter(
        "failures",
        "Failed attempts",
        "Failed attempts to deliver a message.",
        "delivery.failures",
        "{failure}",
    ),
    _counter("dead", "Dead letters", "Messages that went to the dead letters.", "message.dead", "{message}"),
    _gauge(
        "retrying", "Retrying", "Messages that wait for another attempt.", "message.retrying", "{message}"
    ),
    _gauge(
        "waiting",
        "Waiting for a worker",
        "Messages that are due and wait for a worker.",
        "message.waiting",
        "{message}",
    ),
    _gauge("lag_seconds", "Lag in seconds", "How long the first waiting message has been due.", "lag", "s"),
    _counter("log_bytes", "Bytes to the log", "Bytes written to the log.", "log.written", "By"),
    _counter("slot_bytes", "Bytes to slot files", "Bytes written to the slot files.", "slot.written", "By"),
    _gauge("failed", "Failed", "1 when the store has failed, else 0.", "store.failed", "{store}"),
)
"""One figure for each field, in the order of the dashboard."""
