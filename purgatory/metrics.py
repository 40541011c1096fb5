"""Metrics of purgatories for Prometheus. Needs the extra ``metrics``."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.core import Metric as Exported
from prometheus_client.registry import Collector

from purgatory import DelayedOperation, Purgatory
from purgatory._figures.event_loop import LoopSources
from purgatory._figures.histogram import LATENESS_BOUNDS, WAIT_BOUNDS, Histogram
from purgatory._figures.journal import LOST_ROWS, Journal, lost_rows
from purgatory._figures.messages import MESSAGE_FIGURES, MessageStore
from purgatory._figures.operations import ENDED_OPERATIONS, FIGURES, LATENESS, WAITS, lateness
from purgatory._figures.relay import RELAY_FIGURES, Relaying
from purgatory._figures.sources import Sources
from purgatory.observer import OUTCOMES, Timing


class PurgatoryCollector(Collector):
    """Exports the figures of some purgatories to a registry of prometheus_client.

    ``REGISTRY.register(PurgatoryCollector(purgatory))`` exports the figures of `Purgatory.statistics`. The
    collector also observes the purgatory from then on, and exports how long its operations waited and how
    late they expired. With a `journal`, it also exports how many rows the journal has lost.

    The only labels are names of purgatories, outcomes and tables: a key never becomes a label. In a name,
    code points that UTF-8 does not allow are escaped. The loop spends less than a microsecond for each
    operation that ends (`python -m benchmarks journal`). The scrape does all other work, and may run in any
    thread. The figures of one scrape do not belong to one instant: each figure is correct, but an operation
    that ends during the scrape may be in one figure and not yet in another.

    Raises ValueError if two open purgatories have the same name: their figures would be one series.
    """

    def __init__(self, *purgatories: Purgatory, journal: Journal | None = None) -> None:
        self._purgatories = Sources(FIGURES)
        self._loops = LoopSources()
        self._observers: dict[str, HistogramObserver] = {}
        self._journal = journal
        for purgatory in purgatories:
            self.add(purgatory)

    def __repr__(self) -> str:
        return f"<PurgatoryCollector {self._purgatories}>"

    def add(self, purgatory: Purgatory) -> None:
        """Export one more purgatory. It takes the place of a closed purgatory of the same name.

        The counters and the histograms of that name then go on. Raises ValueError if an open purgatory has
        the same name.
        """
        name = self._purgatories.add(purgatory, purgatory)
        self._loops.add_loop_of(purgatory)
        purgatory.add_observer(self._observers.setdefault(name, HistogramObserver()))

    def remove(self, purgatory: Purgatory) -> bool:
        """Stop exporting and observing `purgatory`. False if it is not exported."""
        name = self._purgatories.remove(purgatory)
        if name is None:
            return False
        self._loops.drop(name)
        return purgatory.remove_observer(self._observers.pop(name))

    def collect(self) -> Iterator[Exported]:
        """All metrics as they are now. Any thread may call it."""
        yield from _families(self._purgatories)
        yield from _families(self._loops)
        yield from self._histograms()
        if self._journal is not None:
            lost = CounterMetricFamily(LOST_ROWS.name, LOST_ROWS.help, labels=["table"])
            for table, rows in lost_rows(self._journal).items():
                lost.add_metric([table], rows)
            yield lost

    # A registry calls `describe` to learn the names of the metrics. It refuses a second collector with these
    # names.
    describe = collect

    def _histograms(self) -> list[Exported]:
        waits = HistogramMetricFamily(WAITS.name, WAITS.help, labels=["purgatory", "outcome"])
        lateness = HistogramMetricFamily(LATENESS.name, LATENESS.help, labels=["purgatory"])
        for name, observer in list(self._observers.items()):
            for outcome, histogram in observer.waits.items():
                waits.add_metric([name, outcome], *exposition(histogram))
            lateness.add_metric([name], *exposition(observer.lateness))
        return [waits, lateness]


class DelayedCollector(Collector):
    """Exports the figures of some stores of delayed messages to a registry of prometheus_client.

    ``REGISTRY.register(DelayedCollector(messages))`` exports the figures of `DelayedMessages.statistics`,
    as soon as the store is open. The label `purgatory` is the name of the store's purgatory. A
    `PurgatoryCollector` can export the figures of that purgatory, too. The collector costs the loop nothing.

    Raises ValueError if two stores have the same name: their figures would be one series.
    """

    def __init__(self, *stores: MessageStore) -> None:
        self._stores = Sources(MESSAGE_FIGURES)
        for store in stores:
            self.add(store)

    def __repr__(self) -> str:
        return f"<DelayedCollector {self._stores}>"

    def add(self, store: MessageStore) -> None:
        """Export one more store. It takes the place of a closed store of the same name.

        The counters of that name then go on. Raises ValueError if an open store has the same name.
        """
        self._stores.add(store, store.purgatory)

    def remove(self, store: MessageStore) -> bool:
        """Stop exporting `store`. False if it is not exported."""
        return self._stores.remove(store) is not None

    def collect(self) -> Iterator[Exported]:
        """All metrics as they are now. Any thread may call it."""
        yield from _families(self._stores)

    # A registry calls `describe` to learn the names of the metrics. It refuses a second collector with these
    # names.
    describe = collect


class RelayCollector(Collector):
    """Exports the figures of some relays to a registry of prometheus_client.

    ``REGISTRY.register(RelayCollector(relay))`` exports the figures of `Relay.statistics`. The label
    `purgatory` is the name of the relay's purgatory. The collector costs the loop nothing.

    Raises ValueError if the purgatories of two relays have the same name: their figures would be one series.
    """

    def __init__(self, *relays: Relaying) -> None:
        self._relays = Sources(RELAY_FIGURES)
        for relay in relays:
            self.add(relay)

    def __repr__(self) -> str:
        return f"<RelayCollector {self._relays}>"

    def add(self, relay: Relaying) -> None:
        """Export one more relay. It takes the place of a relay of the same name whose purgatory is closed.

        The counters of that name then go on. Raises ValueError if the purgatory of the other relay is open.
        """
        self._relays.add(relay, relay.purgatory)

    def remove(self, relay: Relaying) -> bool:
        """Stop exporting `relay`. False if it is not exported."""
        return self._relays.remove(relay) is not None

    def collect(self) -> Iterator[Exported]:
        """All metrics as they are now. Any thread may call it."""
        yield from _families(self._relays)

    # A registry calls `describe` to learn the names of the metrics. It refuses a second collector with these
    # names.
    describe = collect


def _families(sources: Sources) -> list[Exported]:
    families: dict[str, CounterMetricFamily | GaugeMetricFamily] = {}
    for metric in dict.fromkeys(figure.metric for figure in sources.figures):
        family = CounterMetricFamily if metric.counter else GaugeMetricFamily
        labels = ["purgatory", "outcome"] if metric is ENDED_OPERATIONS else ["purgatory"]
        families[metric.name] = family(metric.name, metric.help, labels=labels)
    for name, values in sources.values():
        for figure, value in values:
            labels = [name, figure.field] if figure.metric is ENDED_OPERATIONS else [name]
            families[figure.metric.name].add_metric(labels, value)
    return list(families.values())


class HistogramObserver:
    """Counts how long the operations of one purgatory waited, by outcome, and how late they expired."""

    __slots__ = ("lateness", "waits")

    def __init__(self) -> None:
        self.waits = {outcome: Histogram(WAIT_BOUNDS) for outcome in OUTCOMES}
        self.lateness = Histogram(LATENESS_BOUNDS)

    def operation_finished(self, purgatory: str, operation: DelayedOperation[Any], timing: Timing) -> None:
        # The histograms are kept by the name of the outcome: a member of an enum takes long to hash, and its
        # `value` takes long to read.
        outcome = operation.state._value_
        self.waits[outcome].count(timing.ended - timing.offered)
        if outcome == "expired":
            late = lateness(operation, timing.ended)
            if late is not None:
                self.lateness.count(late)

    def key_checked(self, purgatory: str, key: Hashable, tried: int, completed: int, at: float) -> None:
        """Do nothing: no metric shows checks."""


def exposition(histogram: Histogram) -> tuple[list[tuple[str, float]], float]:
    """The buckets as Prometheus wants them, and the sum of the durations.

    Each bucket includes all smaller buckets.
    """
    buckets: list[tuple[str, float]] = []
    total = 0
    # The loop may count meanwhile. With one copy, no bucket counts more than a larger bucket.
    for bound, count in zip([*map(str, histogram.bounds), "+Inf"], histogram.counts.copy(), strict=True):
        total += count
        buckets.append((bound, total))
    return buckets, histogram.sum
