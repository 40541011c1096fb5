"""What a reader of OpenTelemetry's SDK collects."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader, Metric


class Collected:
    """A meter provider of its own, and a reader of all that it has."""

    def __init__(self) -> None:
        self._reader = InMemoryMetricReader()
        self.provider = MeterProvider(metric_readers=[self._reader], shutdown_on_exit=False)

    def metrics(self) -> dict[str, Metric]:
        """By their names."""
        return {metric.name: metric for metric in self._metrics()}

    def _metrics(self) -> Iterator[Metric]:
        data = self._reader.get_metrics_data()
        if data is not None:
            for resource in data.resource_metrics:
                for scope in resource.scope_metrics:
                    assert scope.scope.name == "purgatory"
                    yield from scope.metrics

    def points(self, name: str, **attributes: str) -> list[Any]:
        """The points of a metric with these attributes; dots in their names are written as underscores."""
        metric = self.metrics().get(name)
        return [
            point
            for point in (metric.data.data_points if metric else ())
            if attributes.items()
            <= {key.replace(".", "_"): value for key, value in (point.attributes or {}).items()}.items()
        ]

    def value(self, name: str, **attributes: str) -> float | None:
        """The value of the only point with these attributes. None when there is no point."""
        points = self.points(name, **attributes)
        assert len(points) < 2
        return points[0].value if points else None
