"""Metrics and traces of purgatories for OpenTelemetry. Needs the extra ``otel``, which has its API alone.

The instruments show the figures that a purgatory counts anyway, so they cost an operation nothing. Histograms
and spans are recorded for each operation, and only where somebody adds their observer to a purgatory.
"""

from purgatory.otel.instruments import DelayedInstruments, PurgatoryInstruments, RelayInstruments
from purgatory.otel.wait_histograms import WaitHistograms
from purgatory.otel.wait_spans import WaitSpans

__all__ = ["DelayedInstruments", "PurgatoryInstruments", "RelayInstruments", "WaitHistograms", "WaitSpans"]
