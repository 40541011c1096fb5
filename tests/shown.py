"""The metrics of a collector, and a fake journal for it to read."""

from __future__ import annotations

from prometheus_client import CollectorRegistry

from purgatory.metrics import PurgatoryCollector


class Losses:
    """A fake JournalWriter, with the figures that a collector reads."""

    lost_operations = 7
    lost_checks = 2


class Shown:
    """A registry with one collector, and its samples."""

    def __init__(self, collector: PurgatoryCollector) -> None:
        self.registry = CollectorRegistry()
        self.registry.register(collector)

    def value(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(name, labels)

    def series(self) -> dict[str, set[tuple[tuple[str, str], ...]]]:
        """Return the label sets of all samples, by sample name."""
        found: dict[str, set[tuple[tuple[str, str], ...]]] = {}
        for metric in self.registry.collect():
            for sample in metric.samples:
                found.setdefault(sample.name, set()).add(tuple(sample.labels.items()))
        return found

    def buckets(self, name: str, **labels: str) -> dict[float, float]:
        """Return a histogram's upper bounds, each with its cumulative count."""
        return {
            float(sample.labels["le"]): sample.value
            for metric in self.registry.collect()
            for sample in metric.samples
            if sample.name == f"{name}_bucket" and labels.items() <= sample.labels.items()
        }
