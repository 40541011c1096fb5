"""The metrics of delayed messages."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import pytest

from purgatory.delayed import DelayedMessages
from purgatory.metrics import DelayedCollector
from purgatory.testing import ManualClock, VirtualTimeLoop
from tests.scrape import FakeMessages, Scrape

GAUGES = {"retrying", "waiting", "lag_seconds", "failed"}


async def deliver(id: str, payload: bytes, due: float) -> None: ...


async def test_the_metrics_equal_the_statistics(tmp_path: Path, virtual_time: VirtualTimeLoop) -> None:
    messages = DelayedMessages(tmp_path, deliver, clock=virtual_time.time, name="reminders")
    scrape = Scrape(DelayedCollector(messages))
    assert scrape.series() == {}
    async with messages:
        for seconds in (1, 1, 5, 60):
            receipt = await messages.schedule(b"tea", at=virtual_time.time() + seconds)
        assert await messages.cancel(receipt)
        shown = dict(scrape_of(scrape, messages))
        assert shown == asdict(messages.statistics())
        assert (shown["scheduled"], shown["cancelled"]) == (4, 1)
        assert messages.statistics().log_bytes > 100
    assert dict(scrape_of(scrape, messages)) == asdict(messages.statistics())


def scrape_of(scrape: Scrape, messages: DelayedMessages) -> dict[str, float | None]:
    return {
        field: scrape.value(
            f"purgatory_delayed_{field}{'' if field in GAUGES else '_total'}", purgatory="reminders"
        )
        for field in asdict(messages.statistics())
    }


def test_each_figure_has_its_metric(clock: ManualClock) -> None:
    scrape = Scrape(DelayedCollector(FakeMessages(clock.purgatory("polls"))))
    values = [scrape.value(name, purgatory="polls") for name in scrape.series() if "created" not in name]
    assert values == [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]


def test_two_stores_of_the_same_name_are_refused(clock: ManualClock) -> None:
    stores = [FakeMessages(clock.purgatory("polls")) for _ in range(2)]
    with pytest.raises(ValueError, match="'polls' is collected already"):
        DelayedCollector(*stores)
    assert repr(DelayedCollector(stores[0])) == "<DelayedCollector ['polls']>"


def test_a_second_collector_is_refused_by_its_registry(clock: ManualClock) -> None:
    scrape = Scrape(DelayedCollector())
    with pytest.raises(ValueError, match="Duplicated"):
        scrape.registry.register(DelayedCollector())
