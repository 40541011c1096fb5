"""Every suite measures every case, in its smallest size."""

from __future__ import annotations

import json
import math
import os
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from benchmarks.command import SUITES
from benchmarks.harness import processes
from benchmarks.harness.benchmark import Result, Sample, Setting, benchmarks_of
from benchmarks.harness.processes import ROOT
from benchmarks.suites import broker, load, longpoll, pipeline
from benchmarks.suites.delayed import due
from benchmarks.suites.load import (
    DISTRIBUTIONS,
    GENERATOR,
    Plan,
    curves,
    finished,
    limits,
    saturated,
)
from benchmarks.suites.pipeline import DUCKDB, ORDER, STEPS, Journal, most_left

TINY = Setting(builds=("interpreted",), full=True, sizes=(40, 20), times=20, seconds=0.02)
# A measurement takes a tenth of a second, or has several rounds.
SLOWER = ("expiry", "one-instant", "journal")
IN_PROCESS = [
    (suite, name)
    for suite in (
        "waits",
        "timers",
        "endings",
        "journal",
        "collector",
        "dashboard",
        "wheel-size",
        "watch-lists",
        "relay",
    )
    for name in benchmarks_of(suite)
    if name != "relay-notify"
]
WITH_SERVERS = [
    ("relay", "relay-notify"),
    *((suite, name) for suite in ("broker", "longpoll", "push") for name in benchmarks_of(suite)),
]
needs_linux = pytest.mark.skipif(not processes.AVAILABLE, reason="there is no /proc")


def check(suite: str, name: str, setting: Setting = TINY, most: int | None = None) -> dict[str, Sample]:
    _, cases, tables = benchmarks_of(suite)[name].made(setting)
    columns = {table.columns[0].metric for table in tables}
    samples: dict[str, Sample] = {}
    for case in cases[:most]:
        sample = samples[case.name] = case.measure()
        assert all(map(math.isfinite, sample.values())), case
        assert columns & sample.keys(), case
    return samples


@pytest.mark.long
@pytest.mark.real_time
@pytest.mark.parametrize(("suite", "name"), IN_PROCESS, ids=str)
def test_every_case_gives_figures_for_the_tables(
    suite: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The resident set takes one more process for each case.
    monkeypatch.setattr(processes, "AVAILABLE", False)
    check(suite, name, TINY if name not in SLOWER else replace(TINY, sizes=(20,)))


@pytest.mark.long
@pytest.mark.real_time
@needs_linux
@pytest.mark.parametrize(("suite", "name"), WITH_SERVERS, ids=str)
def test_every_server_gives_figures_for_the_tables(
    suite: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(longpoll, "SETTLED", 0.1)
    setting = Setting(builds=("interpreted",), sizes=(3 if name == "wake" else 40,), times=20, seconds=0.1)
    # All ways to wait once; otherwise the first two, as each case starts a server.
    samples = check(suite, name, setting, most=None if name == "wake-all" else 2)
    if name == "wake-client":
        # In a purgatory the client that the record is for looks, and again when it is back; on a condition,
        # all.
        assert samples["purgatory"]["looks"] == 2
        assert 30 <= samples["Condition + wait_for"]["looks"] <= 41


@pytest.mark.long
@pytest.mark.real_time
@needs_linux
# Another file tests the designs, which need brokers.
@pytest.mark.parametrize("name", [name for name in benchmarks_of("delayed") if name != "delayed-designs"])
def test_every_store_of_delayed_messages_gives_figures_for_the_tables(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(due, "HALF_A_MINUTE", 1.0)
    # Those of SQLite and of the library: others need a server. Opening one again takes seconds.
    most = {"delayed-pending": 1, "delayed-burst": 2}.get(name, 3)
    for store, sample in check("delayed", name, replace(TINY, seconds=0.1), most).items():
        assert sample.get("early", 0) == 0, store


def published() -> set[tuple[str, str, str]]:
    rows = set()
    for file in (ROOT / "docs" / "benchmarks" / "runs").glob("*.json"):
        for benchmark in json.loads(file.read_text())["benchmarks"]:
            # The cases of the load test are the rates.
            if benchmark["suite"] != "load":
                rows |= {(benchmark["name"], case["section"], case["name"]) for case in benchmark["cases"]}
    return rows


def test_every_published_row_has_its_case_and_purgatory_is_the_reference() -> None:
    rows = set()
    for suite in SUITES:
        for name, benchmark in benchmarks_of(suite).items():
            for full in (False, True):
                _, cases, _ = benchmark.made(Setting(full=full))
                rows |= {(name, case.section, case.name) for case in cases}
                assert len({(case.section, case.name) for case in cases}) == len(cases)
            if suite in ("waits", "timers", "endings", "journal"):
                first = {case.section: case.name for case in reversed(cases)}
                assert all(name.startswith("purgatory") for name in first.values())
    # This row was renamed after the run.
    renamed = {row for row in published() if row[2].startswith("purgatory's operations alone")}
    assert published() - renamed <= rows


@pytest.mark.slow
@pytest.mark.real_time
def test_the_load_test_measures_all_designs_until_they_saturate(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise RuntimeError("java is not installed")

    monkeypatch.setattr(load, "java_command", missing)
    monkeypatch.setattr(load, "DISTRIBUTIONS", DISTRIBUTIONS[:1])
    setting = Setting(builds=("interpreted",), sizes=(100,), seconds=0.2)
    console = Console(width=100, highlight=False)
    with console.capture() as capture:
        (result,) = load.run(setting, 1, console)
    *designs, generator = curves(result)
    assert designs == ["purgatory", "Kafka's present design", "Kafka 0.8's design"]
    assert generator == GENERATOR
    assert all(row.figures("sent")[0] > 0 for row in result.cases)
    assert max(map(len, capture.get().splitlines())) <= 100


def swept(limits: dict[str, float], rates: tuple[int, ...]) -> tuple[Result, list[tuple[str, float]]]:
    """The result of designs that achieve every rate up to their limit, and the order of the measurements."""
    log: list[tuple[str, float]] = []

    def fake(name: str, limit: float) -> load.Measure:
        def measure(plan: Plan, _: Path) -> Sample:
            log.append((name, plan.rate))
            achieved, spent = min(plan.rate, limit), plan.rate * (5e-6 if name != GENERATOR else 1e-6)
            return {"achieved": achieved, "behind_ms": 1.0, "sent": plan.rate, "cpu_seconds": spent}

        return measure

    designs = {name: fake(name, limit) for name, limit in (limits | {GENERATOR: 1e9}).items()}
    return next(load.run(Setting(sizes=rates), 3, Console(quiet=True), designs)), log


def test_designs_take_turns_and_are_given_up_after_two_rates_that_saturate_them() -> None:
    made, log = swept({"slow": 25, "fast": 1e9}, (10, 20, 30, 40, 50))
    slow, fast, _ = curves(made).values()
    assert [saturated(row) for row in slow] == [False, False, True, True]
    assert (limits(slow), finished(slow)) == (("20", "30"), True)
    assert (limits(fast), len(fast)) == (("50", "no rate tried"), 5)
    first, second, third = ["slow", "fast", GENERATOR], ["fast", "slow"], ["slow", "fast"]
    assert [name for name, rate in log if rate == 10] == [*first, *second, *third]


def test_the_pipeline_is_measured_step_by_step_and_compared_with_its_aims(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Each step costs a second and one more for each 1,000 operations, DuckDB half of that."""
    measured: list[tuple[str, str]] = []

    def measure(step: str, journal: Journal, directory: Path, memory: str) -> Sample:
        measured.append((str(journal), step))
        assert directory.is_dir()
        seconds = (1 + journal.operations / 1000) * (1.4 if journal.hot else 1)
        cost = {"seconds": seconds, "processor_seconds": 2 * seconds, "rss_mib": 4500.0}
        if step in DUCKDB.values():
            return {name: figure / 2 for name, figure in cost.items()}
        return cost | {"heap_mib": 1200.0 if step == "advise" and journal.operations > 100_000 else 900.0}

    monkeypatch.setattr(pipeline, "check", lambda summaries, tables: None)
    monkeypatch.setattr(pipeline, "measure", measure)
    console = Console(width=100, highlight=False)
    with console.capture() as capture:
        setting = Setting(sizes=(100_000,), directory=str(tmp_path))
        results = list(pipeline.run(setting, 1, console))
    journals = ["1,000", "10,000", "100,000", "100,000, one key has 50%", "1,000,000"]
    assert measured == [(journal, step) for journal in journals for step in ORDER]
    assert not list(tmp_path.iterdir())
    printed = capture.get().splitlines()
    lines = {line[: line.index("  ")].strip(): line.split() for line in printed if "  " in line}
    assert lines["10 times the operations: seconds"][-7:] == [*["9.91"] * 5, "10.5", "met"]
    assert lines["10 times the operations: heap"][-4:] == ["1.33", "1.33", "1.15", "missed"]
    assert lines["100,000, one key has 50%: CPU seconds"][-7:] == [*["1.40"] * 5, "1.5", "met"]
    assert lines["100,000"][-3:] == ["202", "101", "2.00"]
    assert lines["1,000,000"][-4:] == ["1,001", "2.00", "4.5", "met"]
    assert [len(result.cases) for result in results] == [len(STEPS) * 5, 1 + 4 * 5]
    assert all(isinstance(result, Result) for result in results)


def test_no_less_was_alive_than_a_collection_left() -> None:
    log = """\
[0.9s] GC(0) Pause Young (Normal) (G1 Evacuation Pause) 24M->5M(256M) 3.1ms
[2.0s] GC(1) Pause Remark 90M->37M(256M) 4.4ms
[2.2s] GC(2) Concurrent Mark Cycle 50.000ms
"""
    assert (most_left(log), most_left("")) == (37, 0)


@pytest.mark.slow
def test_a_server_that_does_not_start_is_quoted_and_one_that_does_ends_with_its_block(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with (
        pytest.raises(RuntimeError, match="did not start"),
        processes.started("benchmarks.suites.longpoll", "hope", "asyncio"),
    ):
        pass
    assert "KeyError: 'hope'" in capfd.readouterr().err
    with broker.running("librdkafka's mock cluster") as (process_id, _):
        os.kill(process_id, 0)
    with pytest.raises(ProcessLookupError):
        os.kill(process_id, 0)
