"""The metrics that Prometheus scrapes."""

from __future__ import annotations

import asyncio
import sys
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from prometheus_client import generate_latest, start_http_server
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector

from purgatory import DelayedValue, Purgatory, PurgatoryFull
from purgatory._figures.event_loop import LOOP_FIGURES
from purgatory._figures.histogram import LATENESS_BOUNDS, WAIT_BOUNDS
from purgatory._figures.operations import FIGURES
from purgatory.journal import JournalWriter
from purgatory.metrics import DelayedCollector, HistogramObserver, PurgatoryCollector, RelayCollector
from purgatory.observer import OUTCOMES, Observer
from purgatory.testing import ManualClock
from tests.operations import Gate, raising
from tests.scrape import FakeMessages, FakeRelay, LossyJournal, Scrape


@pytest.fixture
def collector() -> PurgatoryCollector:
    return PurgatoryCollector()


@pytest.fixture
def scrape(collector: PurgatoryCollector) -> Scrape:
    return Scrape(collector)


@pytest.fixture
def polls(clock: ManualClock, collector: PurgatoryCollector) -> Purgatory:
    """A purgatory whose metrics are collected."""
    purgatory = clock.purgatory("polls")
    collector.add(purgatory)
    return purgatory


def test_metrics_equal_the_statistics(clock: ManualClock, polls: Purgatory, scrape: Scrape) -> None:
    gates = [polls.try_complete_else_watch(Gate(60), [number % 4, "all"]) for number in range(20)]
    for gate in gates[:6]:
        gate.force_complete()
    for gate in gates[6:8]:
        gate.cancel()
    gates[8].completing = raising(ValueError("bad"))
    gates[8].force_complete()
    for gate in gates[9:13]:
        gate.reschedule(1)
    with pytest.raises(ExceptionGroup):
        clock.advance(2)

    figures = polls.statistics()
    assert figures.pending == 7
    ended = {
        outcome: scrape.value("purgatory_operations_total", purgatory="polls", outcome=outcome)
        for outcome in OUTCOMES
    }
    assert ended == {"completed": 6, "expired": 4, "cancelled": 2, "failed": 1}
    assert scrape.value("purgatory_pending", purgatory="polls") == 7
    assert scrape.value("purgatory_watched", purgatory="polls") == figures.watched == 14
    assert scrape.value("purgatory_keys", purgatory="polls") == figures.keys == 5
    assert scrape.value("purgatory_timer_wakeups_total", purgatory="polls") == figures.wakeups > 0
    assert scrape.value("purgatory_slices_total", purgatory="polls") == figures.slices == 0


def test_a_limit_and_what_it_has_refused_are_exported(
    clock: ManualClock, collector: PurgatoryCollector, scrape: Scrape
) -> None:
    full = clock.purgatory("full", max_pending=1)
    collector.add(full)
    full.try_complete_else_watch(Gate(60), ["a"])
    for _ in range(2):
        with pytest.raises(PurgatoryFull):
            full.try_complete_else_watch(Gate(60), ["a"])
    assert scrape.value("purgatory_pending", purgatory="full") == 1
    assert scrape.value("purgatory_max_pending", purgatory="full") == 1
    assert scrape.value("purgatory_refused_total", purgatory="full") == 2


def test_a_purgatory_without_a_limit_exports_none(polls: Purgatory, scrape: Scrape) -> None:
    assert scrape.value("purgatory_max_pending", purgatory="polls") is None
    assert scrape.value("purgatory_refused_total", purgatory="polls") == 0


def test_operations_that_expire_and_that_no_check_has_tried_are_exported(
    clock: ManualClock, polls: Purgatory, scrape: Scrape
) -> None:
    for key in ("checked", "forgotten", "forgotten"):
        polls.try_complete_else_watch(Gate(1), [key])
    polls.try_complete_else_watch(DelayedValue[int](1))
    polls.check_and_complete("checked")
    clock.advance(2)
    assert scrape.value("purgatory_operations_total", purgatory="polls", outcome="expired") == 4
    assert scrape.value("purgatory_expired_untried_total", purgatory="polls") == 2


def test_operations_without_a_key_count_as_watchers_of_one_key(polls: Purgatory, scrape: Scrape) -> None:
    for _ in range(3):
        polls.try_complete_else_watch(DelayedValue[int](None))
    figures = ("purgatory_pending", "purgatory_watched", "purgatory_keys")
    assert [scrape.value(figure, purgatory="polls") for figure in figures] == [3, 3, 1]


def test_an_outcome_without_operations_is_exported_as_zero(polls: Purgatory, scrape: Scrape) -> None:
    assert scrape.value("purgatory_operations_total", purgatory="polls", outcome="failed") == 0


def test_each_outcome_has_its_own_waits(clock: ManualClock, polls: Purgatory, scrape: Scrape) -> None:
    gates = [polls.try_complete_else_watch(Gate(30), ["a"]) for _ in range(4)]
    clock.advance(0.003)
    gates[0].force_complete()
    clock.advance(0.1)
    gates[1].cancel()
    clock.advance(2)
    gates[2].completing = raising(ValueError("bad"))
    gates[2].force_complete()
    with pytest.raises(ExceptionGroup):
        clock.advance(60)
    polls.try_complete_else_watch(Gate(30, opened=True), ["a"])

    first_with = {
        outcome: next(
            bound
            for bound, count in scrape.buckets(
                "purgatory_wait_seconds", purgatory="polls", outcome=outcome
            ).items()
            if count
        )
        for outcome in ("completed", "cancelled", "failed", "expired")
    }
    assert first_with == {"completed": 0.001, "cancelled": 0.128, "failed": 4.096, "expired": 32.768}
    waits = {"purgatory": "polls", "outcome": "completed"}
    assert scrape.value("purgatory_wait_seconds_count", **waits) == 2
    assert scrape.value("purgatory_wait_seconds_sum", **waits) == pytest.approx(0.003)


class SlowGate(Gate):
    """Blocks the loop for 40 ms while it completes."""

    def on_complete(self) -> str:
        self.clock._now += 0.04
        return super().on_complete()

    clock: ManualClock


def test_only_operations_that_expire_at_their_deadlines_have_a_lateness(
    clock: ManualClock, polls: Purgatory, scrape: Scrape
) -> None:
    late = SlowGate(1)
    late.clock = clock
    polls.try_complete_else_watch(late, ["a"])
    clock.advance(5)
    # These have none: they are tried once, completed, withdrawn.
    polls.try_complete_else_watch(Gate(0), ["a"])
    polls.try_complete_else_watch(Gate(opened=True), ["a"])
    polls.try_complete_else_watch(Gate(1), ["a"]).cancel()

    buckets = scrape.buckets("purgatory_lateness_seconds", purgatory="polls")
    assert next(bound for bound, count in buckets.items() if count) == 0.064
    assert scrape.value("purgatory_lateness_seconds_count", purgatory="polls") == 1
    assert scrape.value("purgatory_lateness_seconds_sum", purgatory="polls") == pytest.approx(0.04)


def test_an_operation_that_expires_at_the_very_instant_of_its_deadline_has_a_lateness_of_zero(
    clock: ManualClock, polls: Purgatory, scrape: Scrape
) -> None:
    polls.try_complete_else_watch(Gate(1), ["a"])
    clock.advance(1)
    assert scrape.value("purgatory_lateness_seconds_count", purgatory="polls") == 1
    assert scrape.value("purgatory_lateness_seconds_sum", purgatory="polls") == 0


async def test_operations_that_closing_expires_have_no_lateness(
    collector: PurgatoryCollector, scrape: Scrape
) -> None:
    async with Purgatory("closed") as purgatory:
        collector.add(purgatory)
        for timeout in (None, 60):
            purgatory.try_complete_else_watch(Gate(timeout), ["a"])
    assert scrape.value("purgatory_wait_seconds_count", purgatory="closed", outcome="expired") == 2
    assert scrape.value("purgatory_lateness_seconds_count", purgatory="closed") == 0


def test_several_purgatories_share_each_metric_and_differ_by_label(
    clock: ManualClock, collector: PurgatoryCollector, scrape: Scrape
) -> None:
    for number, name in enumerate(("one", "two", "three"), 1):
        purgatory = clock.purgatory(name)
        collector.add(purgatory)
        for _ in range(number):
            purgatory.try_complete_else_watch(Gate(60), ["a"])
        purgatory.operations()[0].cancel()
    assert [scrape.value("purgatory_pending", purgatory=name) for name in ("one", "two", "three")] == [
        0,
        1,
        2,
    ]
    names = [metric.name for metric in scrape.registry.collect()]
    assert len(names) == len(set(names))
    assert repr(collector) == "<PurgatoryCollector ['one', 'two', 'three']>"


def test_operations_older_than_the_collector_are_counted_but_are_in_no_histogram(clock: ManualClock) -> None:
    purgatory = clock.purgatory("counted")
    purgatory.try_complete_else_watch(Gate(60), ["a"])
    scrape = Scrape(PurgatoryCollector(purgatory))
    assert scrape.value("purgatory_wait_seconds_count", purgatory="counted", outcome="completed") == 0
    purgatory.operations()[0].force_complete()
    purgatory.try_complete_else_watch(Gate(opened=True), ["a"])
    assert scrape.value("purgatory_operations_total", purgatory="counted", outcome="completed") == 2
    assert scrape.value("purgatory_wait_seconds_count", purgatory="counted", outcome="completed") == 1


def test_two_purgatories_of_the_same_name_are_refused(clock: ManualClock) -> None:
    with pytest.raises(ValueError, match="'same' is collected already"):
        PurgatoryCollector(clock.purgatory("same"), clock.purgatory("same"))


async def test_a_purgatory_that_is_made_again_after_closing_goes_on_with_the_counts_of_the_old_one(
    collector: PurgatoryCollector, scrape: Scrape
) -> None:
    for _ in range(3):
        async with Purgatory("restarted") as purgatory:
            collector.add(purgatory)
            purgatory.try_complete_else_watch(Gate(opened=True), ["a"])
            purgatory.try_complete_else_watch(Gate(60), ["a"])
            assert scrape.value("purgatory_pending", purgatory="restarted") == 1
    ended = {
        outcome: scrape.value("purgatory_operations_total", purgatory="restarted", outcome=outcome)
        for outcome in OUTCOMES
    }
    assert ended == {"completed": 3, "expired": 3, "cancelled": 0, "failed": 0}
    waits = {"purgatory": "restarted", "outcome": "completed"}
    assert scrape.value("purgatory_wait_seconds_count", **waits) == 3
    assert scrape.value("purgatory_pending", purgatory="restarted") == 0


async def test_the_place_of_a_purgatory_is_free_when_its_closing_has_ended_all_operations(
    collector: PurgatoryCollector, scrape: Scrape
) -> None:
    new, refused = Purgatory("closing"), []

    def add_early() -> None:
        with pytest.raises(ValueError, match="'closing' is collected already"):
            collector.add(new)
        refused.append(new)

    async with Purgatory("closing") as purgatory:
        collector.add(purgatory)
        purgatory.try_complete_else_watch(Gate(60, expiring=add_early), ["a"])
        purgatory.try_complete_else_watch(Gate(60), ["a"])
    assert refused == [new]
    collector.add(new)
    expired = {"purgatory": "closing", "outcome": "expired"}
    assert scrape.value("purgatory_operations_total", **expired) == 2


def test_a_purgatory_that_is_removed_is_neither_exported_nor_observed(
    clock: ManualClock, collector: PurgatoryCollector, polls: Purgatory, scrape: Scrape
) -> None:
    polls.try_complete_else_watch(Gate(opened=True), ["a"])
    assert collector.remove(polls)
    assert not collector.remove(polls)
    assert not any(scrape.series().values())
    assert polls._engine.observers.all == ()

    again = clock.purgatory("polls")
    collector.add(again)
    again.try_complete_else_watch(Gate(opened=True), ["a"])
    completed = {"purgatory": "polls", "outcome": "completed"}
    assert scrape.value("purgatory_operations_total", **completed) == 1
    assert scrape.value("purgatory_wait_seconds_count", **completed) == 1


def test_a_purgatory_of_the_same_name_as_another_one_cannot_be_removed_in_its_place(
    clock: ManualClock, collector: PurgatoryCollector, polls: Purgatory, scrape: Scrape
) -> None:
    assert not collector.remove(clock.purgatory("polls"))
    assert scrape.value("purgatory_pending", purgatory="polls") == 0


async def test_a_store_or_a_relay_that_is_made_again_goes_on_with_the_counts_of_the_old_one() -> None:
    stores, relays = DelayedCollector(), RelayCollector()
    scrape = Scrape(stores)
    scrape.registry.register(relays)
    for _ in range(2):
        async with Purgatory("restarted") as purgatory:
            store, relay = FakeMessages(purgatory), FakeRelay(purgatory)
            stores.add(store)
            relays.add(relay)
    assert scrape.value("purgatory_delayed_scheduled_total", purgatory="restarted") == 2 * 1
    assert scrape.value("purgatory_delayed_retrying", purgatory="restarted") == 6
    assert scrape.value("purgatory_relay_connections_total", purgatory="restarted") == 2 * 3
    assert scrape.value("purgatory_relay_connected", purgatory="restarted") == 1
    assert (stores.remove(store), relays.remove(relay)) == (True, True)
    assert (stores.remove(store), relays.remove(relay)) == (False, False)
    assert scrape.series() == {}


def test_a_second_collector_is_refused_by_its_registry(scrape: Scrape) -> None:
    with pytest.raises(ValueError, match="Duplicated"):
        scrape.registry.register(PurgatoryCollector())


def test_lost_rows_are_exported_only_with_a_journal(scrape: Scrape) -> None:
    assert "purgatory_journal_lost_rows_total" not in scrape.series()
    journaled = Scrape(PurgatoryCollector(journal=LossyJournal()))
    assert journaled.value("purgatory_journal_lost_rows_total", table="operations") == 7
    assert journaled.value("purgatory_journal_lost_rows_total", table="checks") == 2


def test_a_journal_writer_serves_as_the_journal(tmp_path: Path) -> None:
    scrape = Scrape(PurgatoryCollector(journal=JournalWriter(tmp_path)))
    assert scrape.value("purgatory_journal_lost_rows_total", table="operations") == 0
    assert scrape.value("purgatory_journal_lost_rows_total", table="checks") == 0


def test_the_number_of_series_does_not_depend_on_the_number_of_keys(polls: Purgatory, scrape: Scrape) -> None:
    polls.try_complete_else_watch(Gate(opened=True), ["first"])
    before = scrape.series()
    for number in range(1000):
        key = f"key {number}"
        polls.try_complete_else_watch(Gate(60, opened=number % 2 == 0), [key, (key, number)])
        polls.check_and_complete(key)
    assert scrape.series() == before
    labels = {label for series in before.values() for labels in series for label, _ in labels}
    assert labels == {"purgatory", "outcome", "le"}
    histograms = len(OUTCOMES) * (len(WAIT_BOUNDS) + 3) + len(LATENESS_BOUNDS) + 3
    # All figures but the limit, which it does not have.
    assert sum(map(len, before.values())) == len((*FIGURES, *LOOP_FIGURES)) - 1 + histograms


def test_observing_takes_no_memory_between_two_scrapes(polls: Purgatory) -> None:
    gate = polls.try_complete_else_watch(Gate(opened=True), ["a"])
    histograms = HistogramObserver()
    observer: Observer = histograms
    completed = histograms.waits["completed"]
    counts = completed.counts
    for _ in range(1000):
        observer.operation_finished("polls", gate, gate._timing)
        observer.key_checked("polls", "a", 1, 1, 0.0)
    assert completed.counts is counts
    assert (len(counts), sum(counts)) == (len(WAIT_BOUNDS) + 1, 1000)


@pytest.fixture
def frequent_thread_switches() -> Iterator[None]:
    """Without it, a busy loop keeps the other threads waiting at each of their reads."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(usual)


@pytest.mark.slow
@pytest.mark.real_time
async def test_a_scrape_from_another_thread_never_sees_a_figure_go_back(
    collector: PurgatoryCollector, scrape: Scrape, frequent_thread_switches: None
) -> None:
    server, thread = start_http_server(0, "127.0.0.1", registry=scrape.registry)
    address = f"http://127.0.0.1:{server.server_port}/metrics"

    def scrape_ten_times() -> list[dict[tuple[str, str | None, str | None], float]]:
        scrapes = []
        for _ in range(10):
            with urllib.request.urlopen(address, timeout=30) as response:
                scrapes.append(samples(response.read().decode()))
        return scrapes

    try:
        async with Purgatory("busy") as purgatory:
            collector.add(purgatory)
            # So that the first scrape has a figure above zero.
            purgatory.try_complete_else_watch(Gate(opened=True), ["a"])
            scraping = asyncio.create_task(asyncio.to_thread(scrape_ten_times))
            ended = 1
            while not scraping.done():
                for _ in range(50):
                    purgatory.try_complete_else_watch(Gate(60), ["a"]).force_complete()
                    ended += 1
                await asyncio.sleep(0)
            scrapes = await scraping
    finally:
        await asyncio.to_thread(server.shutdown)
        server.server_close()
        await asyncio.to_thread(thread.join, 30)
        assert not thread.is_alive()

    completed = [each["purgatory_operations_total", "completed", None] for each in scrapes]
    assert completed == sorted(completed)
    assert completed[-1] <= ended
    for each in scrapes:
        buckets = [each["purgatory_wait_seconds_bucket", "completed", le] for le in BUCKETS]
        assert buckets == sorted(buckets)
        assert buckets[-1] == each["purgatory_wait_seconds_count", "completed", None]


BUCKETS = [*map(str, WAIT_BOUNDS), "+Inf"]


def samples(text: str) -> dict[tuple[str, str | None, str | None], float]:
    """The values of a scrape, by name, outcome and bucket."""
    return {
        (sample.name, sample.labels.get("outcome"), sample.labels.get("le")): sample.value
        for metric in text_string_to_metric_families(text)
        for sample in metric.samples
    }


COLLECTORS: list[Callable[[Purgatory], Collector]] = [
    PurgatoryCollector,
    lambda purgatory: DelayedCollector(FakeMessages(purgatory)),
    lambda purgatory: RelayCollector(FakeRelay(purgatory)),
]


@pytest.mark.parametrize("collector_of", COLLECTORS)
def test_a_name_that_utf_8_cannot_encode_is_escaped(
    clock: ManualClock, collector_of: Callable[[Purgatory], Collector]
) -> None:
    scrape = Scrape(collector_of(clock.purgatory("caf\udce9")))
    text = generate_latest(scrape.registry).decode()
    names = {
        sample.labels["purgatory"]
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert names == {r"caf\udce9"}
