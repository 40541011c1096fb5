"""The command, from its options to tables and file, on figures that are made up."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.pipeline import __main__ as command
from benchmarks.pipeline import agreement, findings
from benchmarks.pipeline.case import Case
from benchmarks.pipeline.steps import ADVISE, DUCKDB, ORDER, STEPS, SUMMARIZE, most_left
from benchmarks.pipeline.usage import CommandFailed
from benchmarks.question import Sample
from benchmarks.report import run


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """The steps, in their order: each costs a second and one more for each 1,000 operations, DuckDB half."""
    steps: list[tuple[str, str]] = []

    def measure(step: str, case: Case, directory: Path, memory: str) -> Sample:
        steps.append((str(case), step))
        assert directory.is_dir()
        assert memory == "4g"
        seconds = (1 + case.operations / 1000) * (1.4 if case.hot else 1)
        cost = {"seconds": seconds, "processor_seconds": 2 * seconds, "rss_mib": 4500.0}
        if step == DUCKDB:
            return {name: figure / 2 for name, figure in cost.items()}
        return cost | {"heap_mib": 1200.0 if step == ADVISE and case.operations > 100_000 else 900.0}

    monkeypatch.setattr(command, "measure", measure)
    monkeypatch.setattr(agreement, "check", lambda summaries, tables: 1)
    return steps


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--operations", "999"], "must be a whole number from 1000 on, not '999'"),
        (["--memory", "4"], "must be like 512m or 4g, not '4'"),
        (["--directory", "/no/such/place"], "there is no directory /no/such/place"),
    ],
)
def test_bad_options_are_refused_before_anything_is_measured(
    arguments: list[str], error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        command.main(arguments)
    assert error in capsys.readouterr().err


def test_where_processes_cannot_be_looked_into_it_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "AVAILABLE", False)
    with pytest.raises(SystemExit):
        command.main([])
    assert "this needs Linux" in capsys.readouterr().err


def test_all_figures_stand_side_by_side_and_in_a_file_that_can_be_reported_on(
    measured: list[tuple[str, str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "pipeline.json"
    command.main(["--operations", "100_000", "--directory", str(tmp_path), "--json", str(file)])

    cases = ["1,000", "10,000", "100,000", "100,000, one key has 50%", "1,000,000"]
    assert measured == [(case, step) for case in cases for step in ORDER]
    assert [path.name for path in tmp_path.iterdir()] == ["pipeline.json"]
    printed = capsys.readouterr().out.splitlines()
    assert max(map(len, printed)) <= 100
    said = {line[: line.index("  ")].strip(): line.split() for line in printed if "  " in line}
    assert said["10 times the operations: seconds"][-7:] == [*["9.91"] * 5, "10.5", "met"]
    assert said["10 times the operations: heap"][-7:] == [
        "1.00",
        "1.00",
        "1.00",
        "1.33",
        "1.33",
        "1.15",
        "missed",
    ]
    assert said["100,000, one key has 50%: CPU seconds"][-7:] == [*["1.40"] * 5, "1.5", "met"]
    assert "with 1,000,000 operations it takes 2.0 times as long as DuckDB" in " ".join(
        " ".join(printed).split()
    )
    growth, yardstick = run.read(file).answers
    assert len(growth.samples) == len(STEPS) * len(cases)
    assert len(yardstick.samples) == 2 * len(cases)


def test_a_step_that_fails_or_disagrees_ends_it_with_what_it_said(
    measured: list[tuple[str, str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object) -> Sample:
        raise CommandFailed("no space left")

    def disagreeing(*_: object) -> int:
        raise agreement.Disagreement("minutes: not so many")

    directory = ["--directory", str(tmp_path)]
    monkeypatch.setattr(agreement, "check", disagreeing)
    with pytest.raises(SystemExit, match=r"^minutes: not so many$"):
        command.main(directory)
    assert measured[-1] == ("100,000", DUCKDB)
    monkeypatch.setattr(command, "measure", failing)
    with pytest.raises(SystemExit, match=r"^no space left$"):
        command.main(directory)
    assert not list(tmp_path.iterdir())


def test_the_overhead_stops_mattering_where_spark_takes_less_than_twice_as_long() -> None:
    samples: dict[tuple[Case, str], Sample] = {}
    for operations, seconds in ((10, 9.0), (100, 1.9), (1000, 1.2)):
        samples[Case(operations), SUMMARIZE] = {"seconds": seconds}
        samples[Case(operations), DUCKDB] = {"seconds": 1.0}
    assert findings.overhead(samples).startswith("From 100 operations on")


def test_what_is_alive_is_no_more_than_what_a_collection_left() -> None:
    log = """\
[0.9s] GC(0) Pause Young (Normal) (G1 Evacuation Pause) 24M->5M(256M) 3.1ms
[2.0s] GC(1) Pause Remark 90M->37M(256M) 4.4ms
[2.2s] GC(2) Concurrent Mark Cycle 50.000ms
[2.3s] GC(3) Pause Young (Mixed) (G1 Evacuation Pause) 800M->12M(1024M) 3.1ms
"""
    assert most_left(log) == 37
    assert most_left("") == 0
