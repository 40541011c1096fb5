"""What a collector shows, and a journal for it to ask."""

from __future__ import annotations

from prometheus_client import CollectorRegistry

from purgatory.metrics import PurgatoryCollector


class Losses:
    """What a JournalWriter tells."""

    lost_operations = 7
    lost_checks = 2


class Shown:
    """A registry with one collector, and what it shows."""

    def __init__(self, collector: PurgatoryCollector) -> None:
        self.registry = CollectorRegistry()
        self.registry.register(collector)

    def value(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(name, labels)

    def series(self) -> dict[str, set[tuple[tuple[str, str], ...]]]:
        """The labels of all samples, by the samples' names."""
        found: dict[str, set[tuple[tuple[str, str], ...]]] = {}
        for metric in self.registry.collect():
            for sample in metric.samples:
                found.setdefault(sample.name, set()).add(tuple(sample.labels.items()))
        return found

    def buckets(self, name: str, **labels: str) -> dict[float, float]:
        """The upper bounds of a histogram, and how many there are up to each."""
        return {
            float(sample.labels["le"]): sample.value
            for metric in self.registry.collect()
            for sample in metric.samples
            if sample.name == f"{name}_bucket" and labels.items() <= sample.labels.items()
        }
