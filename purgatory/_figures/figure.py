"""Where one figure is shown."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric of Prometheus, without the suffix that its kind adds to the name; and of OpenTelemetry.

    For OpenTelemetry, `instrument` is its name and `unit` its unit. Both follow the semantic conventions.
    """

    name: str
    help: str
    instrument: str
    unit: str
    counter: bool = False


@dataclass(frozen=True, slots=True)
class Figure:
    """Where a field of some statistics is shown: its title on the dashboard, and its metric.

    A `help` of its own, for the dashboard, is for a figure that shares its metric or needs more words.
    """

    field: str
    title: str
    metric: Metric
    help: str = ""

    @property
    def explanation(self) -> str:
        """What the figure means, for the dashboard."""
        return self.help or self.metric.help
