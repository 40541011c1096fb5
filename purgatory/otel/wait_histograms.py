"""Histograms of how long operations waited, and of how late they expired."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from opentelemetry.metrics import MeterProvider, get_meter

from purgatory import DelayedOperation, __version__
from purgatory._figures.histogram import LATENESS_BOUNDS, WAIT_BOUNDS
from purgatory._figures.operations import LATENESS, WAITS, lateness
from purgatory.errors import safe_text
from purgatory.observer import Timing
from purgatory.otel.attributes import NAME, OUTCOME, SCOPE


class WaitHistograms:
    """An observer that records how long each operation waited, and how late it expired.

    ``Purgatory("polls", observers=[WaitHistograms()])``. One serves all purgatories of a process. Without a
    `meter_provider`, it records for the global one. Each operation that ends costs the loop what the SDK
    takes to record one or two numbers (`python -m benchmarks journal`).
    """

    def __init__(self, meter_provider: MeterProvider | None = None) -> None:
        meter = get_meter(SCOPE, __version__, meter_provider)
        self._waits = meter.create_histogram(
            WAITS.instrument, WAITS.unit, WAITS.help, explicit_bucket_boundaries_advisory=WAIT_BOUNDS
        )
        self._lateness = meter.create_histogram(
            LATENESS.instrument,
            LATENESS.unit,
            LATENESS.help,
            explicit_bucket_boundaries_advisory=LATENESS_BOUNDS,
        )

    def operation_finished(self, purgatory: str, operation: DelayedOperation[Any], timing: Timing) -> None:
        name = safe_text(purgatory)
        outcome = operation.state.value
        self._waits.record(timing.ended - timing.offered, {NAME: name, OUTCOME: outcome})
        if outcome == "expired":
            late = lateness(operation, timing.ended)
            if late is not None:
                self._lateness.record(late, {NAME: name})

    def key_checked(self, purgatory: str, key: Hashable, tried: int, completed: int, at: float) -> None:
        """No histogram shows checks."""
