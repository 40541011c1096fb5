"""The figures as observable instruments of OpenTelemetry."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from opentelemetry.metrics import NoOpMeterProvider
from opentelemetry.sdk.metrics.export import Gauge, Sum
from prometheus_client import CollectorRegistry
from prometheus_client.registry import Collector

from purgatory import Purgatory
from purgatory._figures.event_loop import LOOP_FIGURES
from purgatory._figures.journal import LOST_ROWS
from purgatory._figures.messages import MESSAGE_FIGURES
from purgatory._figures.operations import ENDED_OPERATIONS, FIGURES
from purgatory._figures.relay import RELAY_FIGURES
from purgatory.metrics import DelayedCollector, PurgatoryCollector, RelayCollector
from purgatory.otel import DelayedInstruments, PurgatoryInstruments, RelayInstruments
from purgatory.testing import ManualClock
from tests.operations import Gate
from tests.otel.collected import Collected
from tests.scrape import FakeMessages, FakeRelay, LossyJournal

UCUM = re.compile(r"s|By|\{[a-z]+\}")


@pytest.fixture
def collected() -> Collected:
    return Collected()


def everything(purgatory: Purgatory, collected: Collected) -> None:
    PurgatoryInstruments(purgatory, journal=LossyJournal(), meter_provider=collected.provider)
    DelayedInstruments(FakeMessages(purgatory), meter_provider=collected.provider)
    RelayInstruments(FakeRelay(purgatory), meter_provider=collected.provider)


def test_each_figure_of_prometheus_is_an_instrument_with_the_same_value(
    clock: ManualClock, collected: Collected
) -> None:
    purgatory = clock.purgatory("polls", max_pending=10)
    everything(purgatory, collected)
    registry = CollectorRegistry()
    collectors: list[Collector] = [
        PurgatoryCollector(purgatory, journal=LossyJournal()),
        DelayedCollector(FakeMessages(purgatory)),
        RelayCollector(FakeRelay(purgatory)),
    ]
    for collector in collectors:
        registry.register(collector)
    for opened in (True, False, False):
        purgatory.try_complete_else_watch(Gate(60, opened=opened), ["a", "b"])

    for figure in (*FIGURES, *LOOP_FIGURES, *MESSAGE_FIGURES, *RELAY_FIGURES):
        metric = figure.metric
        name = metric.name + ("_total" if metric.counter else "")
        labels, attributes = {"purgatory": "polls"}, {"purgatory_name": "polls"}
        if metric is ENDED_OPERATIONS:
            labels["outcome"] = attributes["purgatory_operation_outcome"] = figure.field
        value = collected.value(metric.instrument, **attributes)
        assert value is not None
        assert value == registry.get_sample_value(name, labels)
    for table, rows in (("operations", 7), ("checks", 2)):
        assert collected.value(LOST_ROWS.instrument, purgatory_journal_table=table) == rows
    assert collected.value("purgatory.operation.pending") == 2
    assert collected.value("purgatory.watcher.count") == 4


def test_names_units_and_kinds_follow_the_semantic_conventions(
    clock: ManualClock, collected: Collected
) -> None:
    everything(clock.purgatory("polls", max_pending=1), collected)
    metrics = collected.metrics()
    assert len(metrics) > 30
    for name, metric in metrics.items():
        # https://opentelemetry.io/docs/specs/semconv/general/naming/
        assert re.fullmatch(r"purgatory(\.[a-z]+(_[a-z]+)*)+", name)
        assert not name.endswith(("total", "seconds", "bytes"))
        assert not any(other.startswith(f"{name}.") for other in metrics), "a namespace is no name"
        assert UCUM.fullmatch(str(metric.unit))
        assert metric.description
        is_counter = isinstance(metric.data, Sum) and metric.data.is_monotonic
        assert is_counter or not name.endswith("s"), "only counters have plurals"
        assert isinstance(metric.data, Sum | Gauge)
        assert isinstance(metric.data, Gauge) == (metric.unit == "s"), "only a time cannot be added up"
        for point in metric.data.data_points:
            assert all(key.startswith("purgatory.") for key in point.attributes or {})


def test_what_a_source_does_not_have_is_not_shown(clock: ManualClock, collected: Collected) -> None:
    PurgatoryInstruments(clock.purgatory("polls"), meter_provider=collected.provider)
    assert collected.value("purgatory.operation.limit") is None
    assert collected.value("purgatory.operation.refused") == 0
    assert collected.points(LOST_ROWS.instrument) == []


def test_a_name_that_utf_8_cannot_encode_is_escaped(clock: ManualClock, collected: Collected) -> None:
    PurgatoryInstruments(clock.purgatory("caf\udce9"), meter_provider=collected.provider)
    assert collected.value("purgatory.key.count", purgatory_name=r"caf\udce9") == 0


async def test_a_purgatory_that_is_made_again_after_closing_goes_on_with_the_counts_of_the_old_one(
    collected: Collected,
) -> None:
    instruments = PurgatoryInstruments(meter_provider=collected.provider)
    for count in (1, 2, 3):
        async with Purgatory("restarted") as purgatory:
            instruments.add(purgatory)
            purgatory.try_complete_else_watch(Gate(opened=True), ["a"])
            completed = collected.value("purgatory.operations", purgatory_operation_outcome="completed")
            assert completed == count
    assert repr(instruments) == "<PurgatoryInstruments ['restarted']>"


def test_what_is_removed_is_shown_no_more(clock: ManualClock, collected: Collected) -> None:
    purgatory = clock.purgatory("polls")
    operations = PurgatoryInstruments(purgatory, meter_provider=collected.provider)
    store, relay = FakeMessages(purgatory), FakeRelay(purgatory)
    messages = DelayedInstruments(store, meter_provider=collected.provider)
    signals = RelayInstruments(relay, meter_provider=collected.provider)
    assert repr(messages) == "<DelayedInstruments ['polls']>"
    assert repr(signals) == "<RelayInstruments ['polls']>"
    for removed in (True, False):
        assert bool(collected.metrics()) is removed
        assert operations.remove(purgatory) is removed
        assert messages.remove(store) is removed
        assert signals.remove(relay) is removed


def test_two_purgatories_of_the_same_name_are_refused(clock: ManualClock, collected: Collected) -> None:
    same = [clock.purgatory("same"), clock.purgatory("same")]
    with pytest.raises(ValueError, match="'same' is collected already"):
        PurgatoryInstruments(*same, meter_provider=collected.provider)


def test_instruments_that_the_sdk_would_drop_in_silence_are_refused(
    clock: ManualClock, collected: Collected
) -> None:
    PurgatoryInstruments(clock.purgatory("first"), meter_provider=collected.provider)
    with pytest.raises(ValueError, match="make the instruments once, and add to them"):
        PurgatoryInstruments(clock.purgatory("second"), meter_provider=collected.provider)
    # They share no instrument with these, nor do those of another provider.
    DelayedInstruments(meter_provider=collected.provider)
    PurgatoryInstruments(clock.purgatory("second"), meter_provider=Collected().provider)


def test_without_an_sdk_instruments_may_be_made_again(clock: ManualClock) -> None:
    for _ in range(2):
        PurgatoryInstruments(clock.purgatory("polls"))
        PurgatoryInstruments(clock.purgatory("polls"), meter_provider=NoOpMeterProvider())


def test_instruments_observe_no_operation(clock: ManualClock, collected: Collected) -> None:
    purgatory = clock.purgatory("polls")
    PurgatoryInstruments(purgatory, meter_provider=collected.provider)
    assert not purgatory._engine.observed


def test_the_api_alone_is_imported() -> None:
    program = "import sys, purgatory.otel; print([name for name in sys.modules if '.sdk' in name])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
