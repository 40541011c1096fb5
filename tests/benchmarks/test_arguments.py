"""What every command line of the benchmarks refuses, and says about it."""

from __future__ import annotations

import argparse
import importlib.util
from pathlib import Path

import pytest

from benchmarks.arguments import (
    add_json,
    add_loop,
    add_questions,
    command_line,
    existing_directory,
    seconds_between,
    whole,
)


@pytest.fixture
def parser(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> argparse.ArgumentParser:
    """Of everything that commands share, in an empty directory."""
    monkeypatch.chdir(tmp_path)
    parser = command_line("measure", "Measures:\n  a, b.\n", "examples:\n  measure a\n")
    add_questions(parser, ["a", "b"])
    add_loop(parser)
    add_json(parser)
    parser.add_argument("--times", type=whole(10))
    parser.add_argument("--seconds", type=seconds_between(0.1, 60))
    parser.add_argument("--into", type=existing_directory)
    return parser


def test_what_makes_sense_is_taken(parser: argparse.ArgumentParser, tmp_path: Path) -> None:
    words = ["b", "a", "--times=1_000", "--seconds", "0.1", f"--into={tmp_path}", "--json", "run.json"]
    assert vars(parser.parse_args(words)) == {
        "questions": ["b", "a"],
        "loop": "asyncio",
        "json": Path("run.json"),
        "times": 1000,
        "seconds": 0.1,
        "into": tmp_path,
    }


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["c"], "no such question: 'c' (there are a, b)"),
        (["--loop", "trio"], "invalid choice: 'trio'"),
        (["--times", "9"], "must be a whole number from 10 on, not '9'"),
        (["--times", "many"], "must be a whole number from 10 on, not 'many'"),
        (["--seconds", "0.09"], "must be a number of seconds from 0.1 to 60, not '0.09'"),
        (["--seconds", "nan"], "must be a number of seconds from 0.1 to 60, not 'nan'"),
        (["--seconds", "long"], "must be a number of seconds from 0.1 to 60, not 'long'"),
        (["--into", "nowhere"], "there is no directory nowhere"),
        (["--json", "nowhere/run.json"], "there is no directory nowhere to write run.json to"),
        (["--json", "."], ". is a directory"),
    ],
)
def test_what_makes_no_sense_is_refused_in_plain_words(
    parser: argparse.ArgumentParser, words: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        parser.parse_args(words)
    assert ended.value.code == 2
    assert complaint in capsys.readouterr().err


def test_uvloop_is_taken_only_where_it_is_installed(
    parser: argparse.ArgumentParser, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(SystemExit):
        parser.parse_args(["--loop", "uvloop"])
    assert "uvloop is not installed: pip install" in capsys.readouterr().err


def test_the_help_has_its_lines_as_they_are_written(parser: argparse.ArgumentParser) -> None:
    shown = parser.format_help()
    assert "\nMeasures:\n  a, b.\n" in shown
    assert shown.endswith("\nexamples:\n  measure a\n")
