"""What Prometheus is shown."""

from __future__ import annotations

import asyncio
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import start_http_server
from prometheus_client.parser import text_string_to_metric_families

from purgatory import Purgatory
from purgatory.journal import JournalWriter
from purgatory.metrics import LATENESS_BOUNDS, WAIT_BOUNDS, Endings, Histogram, PurgatoryCollector
from purgatory.observer import Observer
from purgatory.testing import ManualClock
from tests.operations import Gate, raising
from tests.shown import Losses, Shown


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def collector() -> PurgatoryCollector:
    return PurgatoryCollector()


@pytest.fixture
def shown(collector: PurgatoryCollector) -> Shown:
    return Shown(collector)


@pytest.fixture
def held(clock: ManualClock, collector: PurgatoryCollector) -> Purgatory:
    """A purgatory that is collected."""
    purgatory = clock.purgatory("held")
    collector.add(purgatory)
    return purgatory


def test_the_figures_are_those_of_the_statistics(clock: ManualClock, held: Purgatory, shown: Shown) -> None:
    gates = [held.try_complete_else_watch(Gate(60), [number % 4, "all"]) for number in range(20)]
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

    figures = held.statistics()
    assert figures.pending == 7
    ended = {
        outcome: shown.value("purgatory_operations_total", purgatory="held", outcome=outcome)
        for outcome in ("completed", "expired", "cancelled", "failed")
    }
    assert ended == {"completed": 6, "expired": 4, "cancelled": 2, "failed": 1}
    assert shown.value("purgatory_pending", purgatory="held") == 7
    assert shown.value("purgatory_watched", purgatory="held") == figures.watched == 14
    assert shown.value("purgatory_keys", purgatory="held") == figures.keys == 5
    assert shown.value("purgatory_timer_wakeups_total", purgatory="held") == figures.wakeups > 0
    assert shown.value("purgatory_slices_total", purgatory="held") == figures.slices == 0


def test_an_outcome_that_never_was_is_shown_as_zero(held: Purgatory, shown: Shown) -> None:
    assert shown.value("purgatory_operations_total", purgatory="held", outcome="failed") == 0


def test_each_outcome_has_its_own_waits(clock: ManualClock, held: Purgatory, shown: Shown) -> None:
    gates = [held.try_complete_else_watch(Gate(30), ["a"]) for _ in range(4)]
    clock.advance(0.003)
    gates[0].force_complete()
    clock.advance(0.1)
    gates[1].cancel()
    clock.advance(2)
    gates[2].completing = raising(ValueError("bad"))
    gates[2].force_complete()
    with pytest.raises(ExceptionGroup):
        clock.advance(60)
    held.try_complete_else_watch(Gate(30, opened=True), ["a"])

    first_with = {
        outcome: next(
            bound
            for bound, count in shown.buckets(
                "purgatory_wait_seconds", purgatory="held", outcome=outcome
            ).items()
            if count
        )
        for outcome in ("completed", "cancelled", "failed", "expired")
    }
    assert first_with == {"completed": 0.001, "cancelled": 0.128, "failed": 4.096, "expired": 32.768}
    waits = {"purgatory": "held", "outcome": "completed"}
    assert shown.value("purgatory_wait_seconds_count", **waits) == 2
    assert shown.value("purgatory_wait_seconds_sum", **waits) == pytest.approx(0.003)


class Late(Gate):
    """Somebody blocks the loop while it completes."""

    def on_complete(self) -> str:
        self.clock._now += 0.04
        return super().on_complete()

    clock: ManualClock


def test_the_lateness_is_that_of_what_its_deadline_has_ended(
    clock: ManualClock, held: Purgatory, shown: Shown
) -> None:
    late = Late(1)
    late.clock = clock
    held.try_complete_else_watch(late, ["a"])
    clock.advance(5)
    # None of these has been late for anything: only tried, completed, withdrawn.
    held.try_complete_else_watch(Gate(0), ["a"])
    held.try_complete_else_watch(Gate(opened=True), ["a"])
    held.try_complete_else_watch(Gate(1), ["a"]).cancel()

    buckets = shown.buckets("purgatory_lateness_seconds", purgatory="held")
    assert next(bound for bound, count in buckets.items() if count) == 0.064
    assert shown.value("purgatory_lateness_seconds_count", purgatory="held") == 1
    assert shown.value("purgatory_lateness_seconds_sum", purgatory="held") == pytest.approx(0.04)


async def test_what_closing_ends_is_not_late(collector: PurgatoryCollector, shown: Shown) -> None:
    async with Purgatory("closed") as purgatory:
        collector.add(purgatory)
        for timeout in (None, 60):
            purgatory.try_complete_else_watch(Gate(timeout), ["a"])
    assert shown.value("purgatory_wait_seconds_count", purgatory="closed", outcome="expired") == 2
    assert shown.value("purgatory_lateness_seconds_count", purgatory="closed") == 0


@given(st.lists(st.floats(0, 1e6) | st.sampled_from(WAIT_BOUNDS)))
def test_a_bucket_has_all_that_do_not_exceed_its_bound(seconds: list[float]) -> None:
    histogram = Histogram(WAIT_BOUNDS)
    for each in seconds:
        histogram.count(each)
    buckets, total = histogram.shown()
    assert dict(buckets) == {str(bound): sum(each <= bound for each in seconds) for bound in WAIT_BOUNDS} | {
        "+Inf": len(seconds)
    }
    assert total == pytest.approx(sum(seconds))


def test_no_usual_timeout_is_a_bound_or_beyond_them() -> None:
    for bounds in (WAIT_BOUNDS, LATENESS_BOUNDS):
        assert list(bounds) == sorted(set(bounds))
    for timeout in (0.1, 0.2, 0.25, 0.5, 1, 2, 2.5, 3, 5, 10, 15, 20, 25, 30, 45, 60, 90, 120, 180, 240):
        above = next(bound for bound in WAIT_BOUNDS if bound >= timeout)
        # So what expires a tick after it is counted where it belongs.
        assert above >= timeout + 0.002


def test_several_purgatories_are_told_apart_and_share_each_metric(
    clock: ManualClock, collector: PurgatoryCollector, shown: Shown
) -> None:
    for number, name in enumerate(("one", "two", "three"), 1):
        purgatory = clock.purgatory(name)
        collector.add(purgatory)
        for _ in range(number):
            purgatory.try_complete_else_watch(Gate(60), ["a"])
        purgatory.operations()[0].cancel()
    assert [shown.value("purgatory_pending", purgatory=name) for name in ("one", "two", "three")] == [0, 1, 2]
    names = [metric.name for metric in shown.registry.collect()]
    assert len(names) == len(set(names))
    assert repr(collector) == "<PurgatoryCollector ['one', 'two', 'three']>"


def test_what_began_before_it_was_collected_is_counted_and_in_no_histogram(clock: ManualClock) -> None:
    purgatory = clock.purgatory("counted")
    purgatory.try_complete_else_watch(Gate(60), ["a"])
    shown = Shown(PurgatoryCollector(purgatory))
    assert shown.value("purgatory_wait_seconds_count", purgatory="counted", outcome="completed") == 0
    purgatory.operations()[0].force_complete()
    purgatory.try_complete_else_watch(Gate(opened=True), ["a"])
    assert shown.value("purgatory_operations_total", purgatory="counted", outcome="completed") == 2
    assert shown.value("purgatory_wait_seconds_count", purgatory="counted", outcome="completed") == 1


def test_two_of_the_same_name_are_refused(clock: ManualClock) -> None:
    with pytest.raises(ValueError, match="'same' is collected already"):
        PurgatoryCollector(clock.purgatory("same"), clock.purgatory("same"))


def test_a_second_collector_is_refused_by_its_registry(shown: Shown) -> None:
    with pytest.raises(ValueError, match="Duplicated"):
        shown.registry.register(PurgatoryCollector())


def test_what_the_journal_has_lost_is_shown_where_there_is_one(shown: Shown) -> None:
    assert "purgatory_journal_lost_rows_total" not in shown.series()
    journaled = Shown(PurgatoryCollector(journal=Losses()))
    assert journaled.value("purgatory_journal_lost_rows_total", table="operations") == 7
    assert journaled.value("purgatory_journal_lost_rows_total", table="checks") == 2


def test_a_journal_writer_is_such_a_journal(tmp_path: Path) -> None:
    shown = Shown(PurgatoryCollector(journal=JournalWriter(tmp_path)))
    assert shown.value("purgatory_journal_lost_rows_total", table="operations") == 0
    assert shown.value("purgatory_journal_lost_rows_total", table="checks") == 0


def test_however_many_keys_there_are_the_series_stay_the_same(held: Purgatory, shown: Shown) -> None:
    held.try_complete_else_watch(Gate(opened=True), ["first"])
    before = shown.series()
    for number in range(1000):
        key = f"key {number}"
        held.try_complete_else_watch(Gate(60, opened=number % 2 == 0), [key, (key, number)])
        held.check_and_complete(key)
    assert shown.series() == before
    labels = {label for series in before.values() for labels in series for label, _ in labels}
    assert labels == {"purgatory", "outcome", "le"}
    assert sum(map(len, before.values())) == 9 + 4 * (len(WAIT_BOUNDS) + 3) + len(LATENESS_BOUNDS) + 3


def test_what_goes_on_while_nobody_scrapes_takes_no_memory(held: Purgatory) -> None:
    gate = held.try_complete_else_watch(Gate(opened=True), ["a"])
    endings = Endings()
    observer: Observer = endings
    counts = endings.completed._counts
    for _ in range(1000):
        observer.operation_finished("held", gate, gate._timing)
        observer.key_checked("held", "a", 1, 1, 0.0)
    assert endings.completed._counts is counts
    assert (len(counts), sum(counts)) == (len(WAIT_BOUNDS) + 1, 1000)


@pytest.fixture
def eager_threads() -> Iterator[None]:
    """Threads take turns often, where a busy loop would keep the others waiting at each of their reads."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(usual)


@pytest.mark.real_time
async def test_a_scrape_from_another_thread_never_sees_a_figure_go_back(
    collector: PurgatoryCollector, shown: Shown, eager_threads: None
) -> None:
    server, thread = start_http_server(0, "127.0.0.1", registry=shown.registry)
    address = f"http://127.0.0.1:{server.server_port}/metrics"

    def scraped() -> list[dict[tuple[str, str | None, str | None], float]]:
        scrapes = []
        for _ in range(10):
            with urllib.request.urlopen(address) as response:
                scrapes.append(figures(response.read().decode()))
        return scrapes

    try:
        async with Purgatory("busy") as purgatory:
            collector.add(purgatory)
            # So that there is something in the first scrape.
            purgatory.try_complete_else_watch(Gate(opened=True), ["a"])
            scraping = asyncio.create_task(asyncio.to_thread(scraped))
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
        await asyncio.to_thread(thread.join)

    completed = [scrape["purgatory_operations_total", "completed", None] for scrape in scrapes]
    assert completed == sorted(completed)
    assert completed[-1] <= ended
    for scrape in scrapes:
        buckets = [scrape["purgatory_wait_seconds_bucket", "completed", le] for le in BUCKETS]
        assert buckets == sorted(buckets)
        assert buckets[-1] == scrape["purgatory_wait_seconds_count", "completed", None]


BUCKETS = [*map(str, WAIT_BOUNDS), "+Inf"]


def figures(text: str) -> dict[tuple[str, str | None, str | None], float]:
    """What a scrape shows, by name, outcome and bucket."""
    return {
        (sample.name, sample.labels.get("outcome"), sample.labels.get("le")): sample.value
        for metric in text_string_to_metric_families(text)
        for sample in metric.samples
    }
