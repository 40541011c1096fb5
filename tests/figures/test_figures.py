"""Each figure is declared once: every outcome is counted, and every statistic is shown."""

from __future__ import annotations

from dataclasses import fields
from typing import cast

import pytest
from prometheus_client import CollectorRegistry

from purgatory import DelayedOperation, OperationState, Purgatory, PurgatoryStatistics
from purgatory._figures.operations import ENDED_OPERATIONS, FIGURES
from purgatory.metrics import HistogramObserver, PurgatoryCollector
from purgatory.observer import OUTCOMES, Observer
from purgatory.testing import ManualClock
from tests.operations import Gate, raising

FIELDS = [field.name for field in fields(PurgatoryStatistics)]


def test_every_state_that_ends_an_operation_is_an_outcome() -> None:
    states = {state.value for state in OperationState}
    assert states - {OperationState.NEW.value, OperationState.PENDING.value} == set(OUTCOMES)


def test_every_outcome_is_a_statistic() -> None:
    assert set(OUTCOMES) <= set(FIELDS)


def test_every_statistic_has_a_figure() -> None:
    assert sorted(figure.field for figure in FIGURES) == sorted(FIELDS)
    assert {figure.field for figure in FIGURES if figure.metric is ENDED_OPERATIONS} == set(OUTCOMES)


def end(purgatory: Purgatory, outcome: str) -> DelayedOperation[str]:
    """Offer an operation, and end it with this outcome."""
    gate = purgatory.try_complete_else_watch(Gate(0 if outcome == "expired" else 60), ["key"])
    if outcome == "cancelled":
        gate.cancel()
    if outcome == "failed":
        gate.completing = raising(ValueError("broken"))
    gate.force_complete()
    assert gate.state.value == outcome
    if outcome == "failed":
        assert isinstance(gate.exception(), ValueError)
    return gate


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_an_outcome_is_counted_under_its_own_name_only(outcome: str) -> None:
    histograms, clock = HistogramObserver(), ManualClock()
    purgatory = clock.purgatory(observers=[histograms])
    end(purgatory, outcome)
    expected = {each: int(each == outcome) for each in OUTCOMES}
    assert {each: getattr(purgatory.statistics(), each) for each in OUTCOMES} == expected
    assert {each: sum(histogram.counts) for each, histogram in histograms.waits.items()} == expected


class FakePurgatory:
    """Its statistics all differ."""

    name = "fake"
    open = False

    def statistics(self) -> PurgatoryStatistics:
        return PurgatoryStatistics(**{field: number for number, field in enumerate(FIELDS, start=1)})

    def add_observer(self, observer: Observer) -> None: ...


def test_every_statistic_is_exported_to_prometheus() -> None:
    registry = CollectorRegistry()
    registry.register(PurgatoryCollector(cast(Purgatory, FakePurgatory())))
    for figure in FIGURES:
        name = figure.metric.name + ("_total" if figure.metric.counter else "")
        labels = {"purgatory": "fake"} | (
            {"outcome": figure.field} if figure.metric is ENDED_OPERATIONS else {}
        )
        assert registry.get_sample_value(name, labels) == FIELDS.index(figure.field) + 1
