"""Waits and lateness as histograms of OpenTelemetry."""

from __future__ import annotations

import pytest

from purgatory._figures.histogram import LATENESS_BOUNDS, WAIT_BOUNDS
from purgatory.metrics import HistogramObserver, exposition
from purgatory.observer import OUTCOMES, Observer
from purgatory.otel import WaitHistograms
from purgatory.testing import ManualClock
from tests.operations import Gate, raising
from tests.otel.collected import Collected


def test_each_operation_is_recorded_as_the_metrics_of_prometheus_count_it(clock: ManualClock) -> None:
    collected, counted = Collected(), HistogramObserver()
    observer: Observer = WaitHistograms(collected.provider)
    purgatory = clock.purgatory("polls", observers=[observer, counted])
    for timeout in (0, 0.0005, 1, 60, 60, 60):
        purgatory.try_complete_else_watch(Gate(timeout), ["a"])
    clock.advance(2.7)
    completed, withdrawn, failing = purgatory.operations()
    completed.force_complete()
    withdrawn.cancel()
    assert isinstance(failing, Gate)
    failing.completing = raising(ValueError("bad"))
    failing.force_complete()
    assert failing.exception()
    purgatory.check_and_complete("a")

    for outcome in OUTCOMES:
        [point] = collected.points(
            "purgatory.operation.duration", purgatory_name="polls", purgatory_operation_outcome=outcome
        )
        assert tuple(point.explicit_bounds) == WAIT_BOUNDS
        assert list(point.bucket_counts) == counted.waits[outcome].counts
        assert point.sum == pytest.approx(exposition(counted.waits[outcome])[1])
    [point] = collected.points("purgatory.operation.lateness", purgatory_name="polls")
    assert tuple(point.explicit_bounds) == LATENESS_BOUNDS
    assert list(point.bucket_counts) == counted.lateness.counts
    # One of the three that expired had a timeout of zero.
    assert point.count == 2
    assert {metric.unit for metric in collected.metrics().values()} == {"s"}


def test_one_observer_serves_all_purgatories(clock: ManualClock) -> None:
    collected = Collected()
    observer = WaitHistograms(collected.provider)
    for name in ("polls", "caf\udce9"):
        clock.purgatory(name, observers=[observer]).try_complete_else_watch(Gate(opened=True), ["a"])
    for name in ("polls", r"caf\udce9"):
        assert len(collected.points("purgatory.operation.duration", purgatory_name=name)) == 1
