"""The samples that a collector exports, and a fake journal, a fake store and a fake relay for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry
from prometheus_client.registry import Collector

from purgatory import Purgatory
from purgatory.relay import RelayStatistics

if TYPE_CHECKING:
    from purgatory.delayed import DelayedStatistics


class LossyJournal:
    """A journal that has lost rows."""

    lost_operations = 7
    lost_checks = 2


class FakeMessages:
    """A store of delayed messages that has counted a different number of each."""

    def __init__(self, purgatory: Purgatory) -> None:
        self.purgatory = purgatory

    def statistics(self) -> DelayedStatistics:
        # Windows cannot import it.
        from purgatory.delayed import DelayedStatistics

        return DelayedStatistics(*range(1, 12))


class FakeRelay:
    """A relay that has counted a different number of each. The first figure is whether it is connected."""

    def __init__(self, purgatory: Purgatory) -> None:
        self.purgatory = purgatory

    def statistics(self) -> RelayStatistics:
        return RelayStatistics(True, *range(2, 16))


class Scrape:
    """A registry with one collector, whose samples it reads."""

    def __init__(self, collector: Collector) -> None:
        self.registry = CollectorRegistry()
        self.registry.register(collector)

    def value(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(name, labels)

    def series(self) -> dict[str, set[tuple[tuple[str, str], ...]]]:
        """The labels of all samples, by the names of the samples."""
        series: dict[str, set[tuple[tuple[str, str], ...]]] = {}
        for metric in self.registry.collect():
            for sample in metric.samples:
                series.setdefault(sample.name, set()).add(tuple(sample.labels.items()))
        return series

    def buckets(self, name: str, **labels: str) -> dict[float, float]:
        """The buckets of a histogram: upper bound -> number of durations up to it."""
        return {
            float(sample.labels["le"]): sample.value
            for metric in self.registry.collect()
            for sample in metric.samples
            if sample.name == f"{name}_bucket" and labels.items() <= sample.labels.items()
        }
