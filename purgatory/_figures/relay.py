"""The figures of a relay: fields of `RelayStatistics`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from purgatory._figures.figure import Figure, Metric

if TYPE_CHECKING:
    from purgatory.purgatory import Purgatory
    from purgatory.relay.statistics import RelayStatistics


class Relaying(Protocol):
    """A relay, such as `purgatory.relay.Relay`."""

    @property
    def purgatory(self) -> Purgatory: ...

    def statistics(self) -> RelayStatistics: ...


def _gauge(field: str, title: str, help: str) -> Figure:
    return Figure(field, title, Metric(f"purgatory_relay_{field}", help))


def _counter(field: str, title: str, help: str) -> Figure:
    return Figure(field, title, Metric(f"purgatory_relay_{field}", help, counter=True))


RELAY_FIGURES: Final = (
    _gauge("connected", "Connected", "1 when signals of other processes are heard, else 0."),
    Figure(
        "heartbeat_age",
        "Heartbeat age in seconds",
        Metric("purgatory_relay_heartbeat_age_seconds", "Time since the last heartbeat arrived."),
    ),
    Figure(
        "generation",
        "Connections",
        Metric("purgatory_relay_connections", "Connections to the transport.", counter=True),
    ),
    _counter("gaps", "Gaps", "Times at which signals may have been missed."),
    _gauge("keys", "Keys", "Keys that are watched, or that were watched a short while ago."),
    _gauge("waiting", "Waiting for a refresh", "Keys and shards that are to be refreshed and checked."),
    _counter("refreshes", "Refreshes", "Calls of refresh."),
    _counter("refreshed", "Refreshed keys", "Keys that were refreshed and checked."),
    _counter("refresh_failures", "Failed refreshes", "Calls of refresh that failed."),
    _counter("signals", "Signals", "Signals that were given in this process."),
    _counter("arrived", "Signals of others", "Signals that arrived from other processes."),
    _counter("published", "Publications", "Publications that the transport has taken."),
    _counter("publish_failures", "Failed publishing", "Attempts to publish that failed."),
    _counter("collapses", "Collapses", "Times at which many signals became one for a whole shard."),
    _counter("unreadable", "Unreadable publications", "Publications that could not be read."),
)
"""One figure for each field, in the order of the dashboard."""
