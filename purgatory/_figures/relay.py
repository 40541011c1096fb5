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


def _gauge(field: str, title: str, help: str, instrument: str, unit: str) -> Figure:
    return Figure(
        field, title, Metric(f"purgatory_relay_{field}", help, f"purgatory.relay.{instrument}", unit)
    )


def _counter(field: str, title: str, help: str, instrument: str, unit: str) -> Figure:
    metric = Metric(f"purgatory_relay_{field}", help, f"purgatory.relay.{instrument}", unit, counter=True)
    return Figure(field, title, metric)


RELAY_FIGURES: Final = (
    _gauge(
        "connected",
        "Connected",
        "1 when signals of other processes are heard, else 0.",
        "connected",
        "{relay}",
    ),
    Figure(
        "heartbeat_age",
        "Heartbeat age in seconds",
        Metric(
            "purgatory_relay_heartbeat_age_seconds",
            "Time since the last heartbeat arrived.",
            "purgatory.relay.heartbeat.age",
            "s",
        ),
    ),
    Figure(
        "generation",
        "Connections",
        Metric(
            "purgatory_relay_connections",
            "Connections to the transport.",
            "purgatory.relay.connections",
            "{connection}",
            counter=True,
        ),
    ),
    _counter("gaps", "Gaps", "Times at which signals may have been missed.", "gaps", "{gap}"),
    _gauge(
        "keys", "Keys", "Keys that are watched, or that were watched a short while ago.", "key.count", "{key}"
    ),
    _gauge(
        "waiting",
        "Waiting for a refresh",
        "Keys and shards that are to be refreshed and checked.",
        "key.waiting",
        "{key}",
    ),
    _counter("refreshes", "Refreshes", "Calls of refresh.", "refreshes", "{refresh}"),
    _counter(
        "refreshed", "Refreshed keys", "Keys that were refreshed and checked.", "key.refreshed", "{key}"
    ),
    _counter(
        "refresh_failures",
        "Failed refreshes",
        "Calls of refresh that failed.",
        "refresh.failures",
        "{failure}",
    ),
    _counter("signals", "Signals", "Signals that were given in this process.", "signals", "{signal}"),
    _counter(
        "arrived",
        "Signals of others",
        "Signals that arrived from other processes.",
        "signal.arrived",
        "{signal}",
    ),
    _counter(
        "published",
        "Publications",
        "Publications that the transport has taken.",
        "publications",
        "{publication}",
    ),
    _counter(
        "publish_failures",
        "Failed publishing",
        "Attempts to publish that failed.",
        "publish.failures",
        "{failure}",
    ),
    _counter(
        "collapses",
        "Collapses",
        "Times at which many signals became one for a whole shard.",
        "collapses",
        "{collapse}",
    ),
    _counter(
        "unreadable",
        "Unreadable publications",
        "Publications that could not be read.",
        "publication.unreadable",
        "{publication}",
    ),
)
"""One figure for each field, in the order of the dashboard."""
