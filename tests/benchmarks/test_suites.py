"""Every suite measures every case, in its smallest size."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from benchmarks.command import SUITES
from benchmarks.harness import processes
from benchmarks.harness.benchmark import Case, Result, Sample, Setting, benchmarks_of
from benchmarks.harness.processes import ROOT
from benchmarks.suites import kafka, longpoll, pipeline
from benchmarks.suites.delayed import STORES
from benchmarks.suites.pipeline import DUCKDB, ORDER, STEPS, Journal, most_left

TINY = Setting(builds=("interpreted",), full=True, sizes=(40, 20), times=20, seconds=0.02)
# A measurement takes a tenth of a second, or has several rounds.
SLOWER = ("expiry", "one-instant", "journal")
IN_PROCESS = [
    (suite, name)
    for suite in ("waits", "timers", "load", "journal", "dashboard")
    for name in benchmarks_of(suite)
]
needs_linux = pytest.mark.skipif(not processes.AVAILABLE, reason="there is no /proc")


def check(
    suite: str, name: str, setting: Setting = TINY, which: Callable[[Case], bool] = lambda _: True
) -> dict[str, Sample]:
    _, cases, tables = benchmarks_of(suite)[name].made(setting)
    columns = {table.columns[0].metric for table in tables}
    samples: dict[str, Sample] = {}
    for case in filter(which, cases):
        sample = samples[case.name] = case.measure()
        assert all(map(math.isfinite, sample.values())), case
        assert columns & sample.keys(), case
    return samples


@pytest.mark.long
@pytest.mark.real_time
@pytest.mark.parametrize(("suite", "name"), IN_PROCESS, ids=str)
def test_every_case_gives_figures_for_the_tables(suite: str, name: str) -> None:
    sizes = {"load": (1_000,)}.get(suite, (20,) if name in SLOWER else TINY.sizes)
    check(suite, name, replace(TINY, sizes=sizes))


@pytest.mark.slow
@pytest.mark.real_time
@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="only Linux pins a process")
@pytest.mark.parametrize("name", benchmarks_of("kafka"))
def test_this_library_beside_kafka_gives_figures_for_the_tables(name: str) -> None:
    check_beside_kafka(name, lambda case: case.name != kafka.KAFKA)


def check_beside_kafka(name: str, which: Callable[[Case], bool]) -> None:
    """Each of these cases has a figure for every column of the tables."""
    columns = [column for table in benchmarks_of("kafka")[name].made(TINY)[2] for column in table.columns]
    for sample in check("kafka", name, replace(TINY, full=False), which).values():
        assert {column.metric for column in columns} <= sample.keys()


@pytest.mark.long
@pytest.mark.real_time
@needs_linux
@pytest.mark.parametrize("name", benchmarks_of("longpoll"))
def test_every_server_gives_figures_for_the_tables(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(longpoll, "SETTLED", 0.1)
    setting = Setting(builds=("interpreted",), sizes=(40,), times=20, seconds=0.1)
    samples = check("longpoll", name, setting)
    if name == "wake-client":
        # In a purgatory the client that the record is for looks, and again when it is back; on a condition,
        # all.
        for purgatory, condition in (
            ("", "Condition + wait_for"),
            (".web.poll", "Condition + wait_for + task"),
        ):
            assert samples[f"purgatory{purgatory}"]["looks"] == 2
            assert 30 <= samples[condition]["looks"] <= 41


@pytest.mark.long
@pytest.mark.real_time
@needs_linux
def test_every_store_of_delayed_messages_gives_figures_for_the_tables() -> None:
    absent = {store.name for store in STORES if not store.available}
    samples = check("delayed", "delayed-rate", which=lambda case: case.name not in absent)
    assert len(samples) == len(STORES) - len(absent)


def published() -> set[tuple[str, str, str]]:
    rows = set()
    for file in (ROOT / "docs" / "benchmarks" / "runs").glob("*.json"):
        for benchmark in json.loads(file.read_text())["benchmarks"]:
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
            if suite in ("waits", "timers", "load", "journal", "delayed"):
                first = {case.section: case.name for case in reversed(cases)}
                assert all(name.startswith("purgatory") for name in first.values())
    # This row was renamed after the run.
    renamed = {row for row in published() if row[2].startswith("purgatory's operations alone")}
    assert published() - renamed <= rows


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
    with processes.started("benchmarks.suites.longpoll", "InPurgatory", "asyncio") as (_, process_id):
        os.kill(process_id, 0)
    with pytest.raises(ProcessLookupError):
        os.kill(process_id, 0)
