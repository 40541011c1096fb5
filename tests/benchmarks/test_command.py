"""The command refuses bad options at once, and records what it measures."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

import purgatory
from benchmarks import command
from benchmarks.harness import record
from benchmarks.harness.benchmark import Build, Case, Setting, benchmarks_of
from benchmarks.harness.worker import in_fresh_process


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["sleep"], "there is no suite 'sleep', but waits, timers"),
        (["timers", "--only", "memory"], "the suites have no benchmark 'memory', but timers, sessions"),
        (["--repetitions", "0"], "--repetitions must be 1 or more"),
        (["--sizes", "100,9"], "must be whole numbers, 10 or more, separated by commas, not '100,9'"),
        (["--sizes", "some"], "must be whole numbers, 10 or more, separated by commas, not 'some'"),
        (["report"], "the following arguments are required: FILE"),
        (["--seconds", "nan"], "--seconds must be from 0.1 to 600"),
        (["--loop", "trio"], "invalid choice: 'trio'"),
        (["--instructions"], "--instructions needs valgrind, which is not installed"),
    ],
)
def test_bad_options_are_refused_before_anything_is_measured(
    arguments: Sequence[str], error: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.which", lambda _: None)
    with pytest.raises(SystemExit):
        command.main(arguments)
    assert error in capsys.readouterr().err


def test_a_file_that_cannot_be_written_is_refused_before_anything_is_measured() -> None:
    error = "--json /no/such/place/run.json: No such file or directory; choose a file that can be written"
    with pytest.raises(SystemExit, match=error):
        command.main(["--json", "/no/such/place/run.json"])


def test_the_default_is_quick_waits_and_full_means_five_repetitions() -> None:
    quick, full = command.parse([]), command.parse(["timers", "timers", "--full"])
    assert (quick.suites, quick.repetitions, quick.full) == (["waits"], 2, False)
    assert (full.suites, full.repetitions) == (["timers"], 5)


@pytest.mark.parametrize(
    ("arguments", "suites", "only"),
    [
        ([], ["waits", "timers"], ["one-key", "sessions"]),
        (["timers"], ["timers"], ["sessions"]),
        (["--only", "three-keys"], ["waits", "timers"], ["three-keys"]),
    ],
)
def test_instructions_are_counted_once_for_waits_and_heartbeats(
    arguments: Sequence[str], suites: Sequence[str], only: Sequence[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.which", lambda _: "/usr/bin/valgrind")
    options = command.parse([*arguments, "--instructions", "--repetitions", "3"])
    assert (options.suites, options.only, options.repetitions) == (suites, only, 1)


# tests/core/test_instructions.py counts those of the core's acts, and is not long.
@pytest.mark.long
@pytest.mark.skipif(shutil.which("valgrind") is None, reason="valgrind counts the instructions")
@pytest.mark.parametrize(
    ("suite", "name", "least", "most"),
    [("waits", "one-key", 5_000, 80_000), ("timers", "sessions", 1_000, 20_000)],
)
def test_the_instructions_of_each_wait_or_heartbeat_are_the_difference_of_few_and_many(
    suite: str, name: str, least: int, most: int
) -> None:
    setting = Setting(instructions=True)
    _, cases, (table,) = benchmarks_of(suite)[name].made(setting)
    sample = in_fresh_process(setting, suite, name, cases[0])
    assert [column.metric for column in table.columns] == list(sample)
    # The compiled core needs some 11,000 for a wait, the interpreted one 38,000.
    assert least < sample["instructions"] < most


@pytest.mark.slow
def test_tables_are_printed_and_recorded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "run.json"
    arguments = ["--only", "dashboard", "--sizes", "20", "--repetitions", "1", "--json", str(file)]
    command.main(["dashboard", *arguments])
    printed = capsys.readouterr().out
    assert "A view of 20 pending operations" in printed
    assert max(map(len, printed.splitlines())) <= 100
    run = record.read(file)
    (result,) = run.benchmarks
    assert result.name == "dashboard"
    assert all(len(row.samples) == 1 for row in result.cases)


@pytest.mark.slow
def test_a_worker_measures_one_case_of_the_build_that_it_imports_or_says_what_is_wrong() -> None:
    build: Build = "compiled" if purgatory.COMPILED else "interpreted"
    setting = Setting(builds=[build], sizes=[20, 10], times=100)
    _, (case, *_), _ = benchmarks_of("waits")["three-keys"].made(setting)
    assert min(in_fresh_process(setting, "waits", "three-keys", case).values()) > 0
    with pytest.raises(
        RuntimeError,
        match=r"(?s)three-keys, nowhere: purgatory failed:.* has no case 'purgatory' in a section",
    ):
        in_fresh_process(setting, "waits", "three-keys", Case("nowhere", "purgatory", dict, build))
