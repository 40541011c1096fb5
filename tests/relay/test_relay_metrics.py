"""The metrics of relays."""

from __future__ import annotations

import asyncio
from dataclasses import asdict

import pytest

from purgatory._figures.relay import RELAY_FIGURES
from purgatory.metrics import RelayCollector
from purgatory.relay import RelayStatistics
from purgatory.testing import InProcessBroker, ManualClock, VirtualTimeLoop
from tests.relay.processes import Process, State
from tests.scrape import FakeRelay, Scrape


def shown_by(scrape: Scrape) -> dict[str, float]:
    shown = {
        figure.field: scrape.value(
            figure.metric.name + ("_total" if figure.metric.counter else ""), purgatory="polls"
        )
        for figure in RELAY_FIGURES
    }
    return {field: value for field, value in shown.items() if value is not None}


async def test_the_metrics_equal_the_statistics(virtual_time: VirtualTimeLoop) -> None:
    broker, state = InProcessBroker(latency=0.1), State()
    waiter = Process(broker, state)
    scrape = Scrape(RelayCollector(waiter.relay))
    assert "heartbeat_age" not in shown_by(scrape)
    assert set(shown_by(scrape).values()) == {0}
    async with Process(broker, state) as writer, waiter:
        waiter.park("tea")
        await asyncio.sleep(1)
        writer.write("tea")
        waiter.write("coffee")
        await asyncio.sleep(1)
        shown = shown_by(scrape)
        assert shown == asdict(waiter.relay.statistics())
        assert (shown["connected"], shown["arrived"], shown["signals"], shown["gaps"]) == (1, 1, 1, 0)
        assert shown["heartbeat_age"] > 0


def test_a_relay_that_is_made_before_there_is_a_loop_has_counted_nothing() -> None:
    relay = Process(InProcessBroker(), State()).relay
    assert set(shown_by(Scrape(RelayCollector(relay))).values()) == {0}
    assert repr(relay) == "<Relay of 'polls' new>"


def test_each_figure_has_its_metric(clock: ManualClock) -> None:
    shown = shown_by(Scrape(RelayCollector(FakeRelay(clock.purgatory("polls")))))
    assert list(shown.values()) == list(range(1, 16))
    assert set(shown) == set(RelayStatistics.__dataclass_fields__)


def test_two_relays_of_purgatories_of_the_same_name_are_refused(clock: ManualClock) -> None:
    relays = [FakeRelay(clock.purgatory("polls")) for _ in range(2)]
    with pytest.raises(ValueError, match="'polls' is collected already"):
        RelayCollector(*relays)
    assert repr(RelayCollector(relays[0])) == "<RelayCollector ['polls']>"


def test_a_second_collector_is_refused_by_its_registry(clock: ManualClock) -> None:
    scrape = Scrape(RelayCollector())
    with pytest.raises(ValueError, match="Duplicated"):
        scrape.registry.register(RelayCollector())
