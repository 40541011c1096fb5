"""The command, from its options to tables and file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.longpoll import __main__ as command
from benchmarks.longpoll import wake_all, wake_one
from benchmarks.question import Sample
from benchmarks.report import run


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["sleep"], "no such question: 'sleep' (there are wake-all, wake-topic, wake-client)"),
        (["--repetitions", "0"], "must be a whole number from 1 on, not '0'"),
        (["--polls", "0"], "must be a whole number from 1 on, not '0'"),
    ],
)
def test_bad_options_are_refused_before_anything_is_measured(
    arguments: list[str], error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        command.main(arguments)
    assert error in capsys.readouterr().err


def test_where_processes_cannot_be_looked_into_it_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command, "AVAILABLE", False)
    with pytest.raises(SystemExit):
        command.main([])
    assert "this needs Linux" in capsys.readouterr().err


def test_all_figures_stand_side_by_side_and_in_a_file_that_can_be_reported_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    measured: list[str] = []

    def all_woken(way: str, loop: str, polls: int) -> Sample:
        measured.append(f"{way} {polls}")
        figures = (
            *("processor_us", "p50_ms", "p99_ms", "stall_ms", "poll_kib", "connection_kib"),
            *("round_trip_us", "park_us", "ready_us"),
        )
        return dict.fromkeys(figures, 1_234.0)

    def one_woken(way: str, loop: str, polls: int, records: int, *, alone: bool) -> Sample:
        measured.append(f"{way} {polls} {records} {alone}")
        looks = polls if alone and way.startswith("condition") else 2
        return {"processor_us": 100.0 * looks, "p50_ms": 1_234.0, "p99_ms": 1_234.0, "looks": looks}

    monkeypatch.setattr(wake_all, "measure", all_woken)
    monkeypatch.setattr(wake_one, "measure", one_woken)
    file = tmp_path / "longpoll.json"
    command.main(["--repetitions", "2", "--polls", "70", "--records", "300", "--json", str(file)])

    ways = ["purgatory", "condition", "future", "purgatory-until-left", "condition-until-left"]
    # In turns, each round beginning with another.
    assert measured[:10] == [f"{way} 70" for way in (*ways, *ways[1:], *ways[:1])]
    assert measured[10:15] == [f"{way} 70 300 False" for way in ways]
    assert measured[20:25] == [f"{way} 70 50 True" for way in ways]
    printed = capsys.readouterr().out.splitlines()
    assert max(map(len, printed)) <= 100
    assert not any("…" in line for line in printed)
    last = [line.split() for line in printed if "Condition + wait_for  " in line][-1]
    assert last[3:7] == ["35.0", "7,000", "(7,000-7,000)", "1,234"]
    written = json.loads(file.read_text())
    assert written["command"] == "python -m benchmarks.longpoll"
    assert [question["name"] for question in written["questions"]] == [
        "wake-all",
        "wake-topic",
        "wake-client",
    ]
    assert [len(answer.samples) for answer in run.read(file).answers] == [5, 5, 5]


@pytest.mark.parametrize(
    ("error", "said"),
    [(RuntimeError("2 clients were woken"), "2 clients were woken"), (TimeoutError(), "TimeoutError()")],
)
def test_a_measurement_that_fails_ends_it_with_what_it_said(
    error: Exception, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object) -> Sample:
        raise error

    monkeypatch.setattr(wake_all, "measure", failing)
    with pytest.raises(SystemExit) as ended:
        command.main(["wake-all", "--quick"])
    assert str(ended.value) == said
