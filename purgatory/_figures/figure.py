"""A figure of the metrics and the dashboard."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric of Prometheus, and the instrument of OpenTelemetry that shows the same.

    The `name` for Prometheus is without the suffix ``_total`` of a counter. The name of the `instrument` and
    its `unit` follow the semantic conventions of OpenTelemetry.
    """

    name: str
    help: str
    instrument: str
    unit: str
    counter: bool = False


@dataclass(frozen=True, slots=True)
class Figure:
    """A field of some statistics, its title on the dashboard, and its metric.

    `help` is the text for the dashboard. It is empty if the help of the metric is enough.
    """

    field: str
    title: str
    metric: Metric
    help: str = ""

    @property
    def explanation(self) -> str:
        """What the figure means, for the dashboard."""
        return self.help or self.metric.help
