"""The command, from its options to tables and file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.broker import __main__ as command
from benchmarks.broker import idle, throughput, wake
from benchmarks.broker.clusters import EXAMPLE, MOCK, Cluster
from benchmarks.question import Sample
from benchmarks.report import run


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["sleep"], "no such question: 'sleep' (there are wake, throughput, idle-consumers)"),
        (["--repetitions", "0"], "must be a whole number from 1 on, not '0'"),
        (["--seconds", "0"], "must be a number of seconds from 0.1 to 600, not '0'"),
    ],
)
def test_bad_options_are_refused_before_anything_is_measured(
    arguments: list[str], error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        command.main(arguments)
    assert error in capsys.readouterr().err


def test_where_processes_cannot_be_looked_into_idle_is_refused_and_all_else_is_not(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "AVAILABLE", False)
    with pytest.raises(SystemExit):
        command.main([])
    assert "idle-consumers needs Linux" in capsys.readouterr().err
    monkeypatch.setattr(wake, "measure", lambda *_: {"p50_ms": 1.0, "p99_ms": 2.0})
    command.main(["wake", "--quick"])


def test_all_figures_stand_side_by_side_and_in_a_file_that_can_be_reported_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    measured: list[str] = []

    def woken(cluster: Cluster, max_wait: float, wakes: int) -> Sample:
        measured.append(f"{cluster.name} {max_wait:g} {wakes}")
        return {"p50_ms": 4.0 if cluster is EXAMPLE else 250.0, "p99_ms": 500.0}

    def produced(cluster: Cluster, records: int, size: int) -> Sample:
        return {"records_per_second": 1e6 / size, "mb_per_second": 1.0}

    def idled(cluster: Cluster, polls: int, seconds: float) -> Sample:
        figures = {"poll_kib": 2.5, "connection_kib": 20.0, "processor_ms": 5.0, "alone_ms": 5.0}
        return figures if cluster is MOCK else figures | {"wake_p50_ms": 100.0, "wake_p99_ms": 200.0}

    monkeypatch.setattr(wake, "measure", woken)
    monkeypatch.setattr(throughput, "measure", produced)
    monkeypatch.setattr(idle, "measure", idled)
    file = tmp_path / "broker.json"
    command.main(["--repetitions", "2", "--wakes", "7", "--json", str(file)])

    # In turns, each round beginning with another.
    assert measured[:4] == [f"{name} {wait} 7" for wait in (0.5, 0.005) for name in (EXAMPLE.name, MOCK.name)]
    assert measured[4:] == measured[1:4] + measured[:1]
    printed = capsys.readouterr().out.splitlines()
    assert max(map(len, printed)) <= 100
    [mock, _] = [line.split() for line in printed if "mock cluster  " in line and "(250-250)" in line]
    assert mock[-6:] == ["62.5", "250", "(250-250)", "500", "(500-500)", "2"]
    assert any("examples.broker" in line and "100" in line and "200" in line for line in printed)
    written = json.loads(file.read_text())
    assert [question["name"] for question in written["questions"]] == ["wake", "throughput", "idle-consumers"]
    assert [len(answer.samples) for answer in run.read(file).answers] == [4, 4, 2]


def test_a_measurement_that_fails_ends_it_with_what_it_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object) -> Sample:
        raise RuntimeError("a record is lost")

    monkeypatch.setattr(throughput, "measure", failing)
    with pytest.raises(SystemExit, match=r"^a record is lost$"):
        command.main(["throughput", "--quick"])
