"""The command: what it is asked, and what it refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks import __main__ as command
from benchmarks.catalogue import CATALOGUE
from benchmarks.question import Contender, Question, Sample
from benchmarks.setting import Setting


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Nothing is measured, but noted: the question and the contender's name."""
    noted: list[tuple[str, str]] = []

    def in_a_fresh_process(_: Setting) -> Callable[[Question, Contender], Sample]:
        def measure(question: Question, contender: Contender) -> Sample:
            noted.append((question.name, contender.name))
            metrics = [column.metric for table in question.tables for column in table.columns]
            return {metric: 654321.0 if "per_s" in metric else 12.3 for metric in metrics}

        return measure

    monkeypatch.setattr(command, "in_a_fresh_process", in_a_fresh_process)
    monkeypatch.setattr(command, "builds_at_hand", lambda: ("compiled", "interpreted"))
    return noted


def test_what_is_named_is_measured_in_that_order_and_once(
    measured: list[tuple[str, str]], capsys: pytest.CaptureFixture[str]
) -> None:
    command.main(["--repetitions", "2", "idle", "checks", "idle"])
    assert list(dict.fromkeys(name for name, _ in measured)) == ["idle", "checks"]
    assert measured.count(("checks", "purgatory, interpreted")) == 2
    printed = capsys.readouterr().out
    assert printed.index("1/2 wake-ups") < printed.index("2/2 checks")
    assert max(map(len, printed.splitlines())) <= 100


def test_all_questions_are_asked_when_none_is_named(measured: list[tuple[str, str]]) -> None:
    command.main(["--quick"])
    assert list(dict.fromkeys(name for name, _ in measured)) == list(CATALOGUE)


def test_tables_fit_a_hundred_columns_in_a_full_run_too(
    measured: list[tuple[str, str]], capsys: pytest.CaptureFixture[str]
) -> None:
    command.main(["--quick", "--full"])
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if "…" in line or len(line) > 100] == []


def test_samples_are_written_question_by_question(measured: list[tuple[str, str]], tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    command.main(["--quick", "--json", str(file), "idle", "checks"])
    written = json.loads(file.read_text())
    assert [question["name"] for question in written["questions"]] == ["idle", "checks"]
    assert written["repetitions"] == 2


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["two-keys"], "no such question: 'two-keys' (there are one-key, three-keys,"),
        (["--repetitions", "0"], "must be a whole number from 1 on, not '0'"),
        (["--sizes", "20,9", "checks"], "must be a whole number from 10 on, not '9'"),
        (["--quick", "--repetitions", "3"], "not allowed with argument --quick"),
    ],
)
def test_what_makes_no_sense_is_refused_in_plain_words(
    arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit_:
        command.main(arguments)
    assert exit_.value.code == 2
    assert complaint in capsys.readouterr().err


def test_help_has_examples_and_names_the_questions(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main(["--help"])
    printed = capsys.readouterr().out
    assert "python -m benchmarks --quick one-key memory" in printed
    assert all(name in printed for name in CATALOGUE)
