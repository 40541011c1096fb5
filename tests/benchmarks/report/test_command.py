"""The command writes the pages, the same for the same runs, or says what is wrong."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import matplotlib as mpl
import pytest

from benchmarks.report.__main__ import main
from tests.benchmarks.report import records

ROOT = Path(__file__).parents[3]


def _written(directory: Path) -> dict[str, bytes]:
    files = (path for path in directory.rglob("*") if path.is_file())
    return {path.relative_to(directory).as_posix(): path.read_bytes() for path in files}


def test_every_page_and_picture_is_written_and_linked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = records.write(tmp_path, records.run(records.parked(), load=records.saturating()), "a.json")
    other = records.write(tmp_path, records.run(records.parked(), loop="uvloop"), "b.json")
    directory = tmp_path / "docs" / "benchmarks"

    main([str(run), str(other), "--into", str(directory)])

    assert capsys.readouterr().out == f"{directory / 'README.md'}, and 6 files beside it\n"
    written = _written(directory)
    assert sorted(written) == [
        "README.md",
        "asyncio/load-p50-p75-20-60-ms.svg",
        "asyncio/load.md",
        "asyncio/one-key-us.svg",
        "asyncio/one-key.md",
        "uvloop/one-key-us.svg",
        "uvloop/one-key.md",
    ]
    pages = {file: text.decode() for file, text in written.items() if file.endswith(".md")}
    links = [
        (directory / file).parent / link
        for file, text in pages.items()
        for link in re.findall(r"\]\(([^)\s]+)\)", text)
    ]
    assert {link.resolve() for link in links} == {(directory / file).resolve() for file in written}


def test_the_index_says_how_to_run_it_again(tmp_path: Path) -> None:
    run = records.write(tmp_path, records.run(records.parked(), loop="uvloop"), "uvloop.json")
    load = records.write(tmp_path, records.run(load=records.saturating()), "load.json")
    wakes = records.question(records.parked()["contenders"], records.column("us", "p50"), name="wake")
    broker = records.run(wakes) | {"command": "python -m benchmarks.broker"}
    brokers = records.write(tmp_path, broker, "broker.json")

    main([str(run), str(load), str(brokers), "--into", str(tmp_path)])

    index = (tmp_path / "README.md").read_text()
    assert "## On uvloop\n\nMeasured on uvloop, 2026-11-21, commit 63f087b; Python 3.11.7, " in index
    assert (
        "python -m benchmarks one-key --full --loop uvloop --repetitions 2 --json uvloop.json\n"
        "python -m benchmarks.load --loop asyncio --seconds 2 --repetitions 2 --json load.json\n"
        "python -m benchmarks.broker wake --repetitions 2 --json broker.json\n"
        "python -m benchmarks.report uvloop.json load.json broker.json\n"
    ) in index


def test_the_same_runs_give_the_same_bytes_in_any_process_with_any_settings(tmp_path: Path) -> None:
    run = records.write(tmp_path, records.run(records.parked(), load=records.saturating()))
    here, there = tmp_path / "here", tmp_path / "there"

    with mpl.rc_context({"font.size": 20, "xtick.major.size": 9}):
        main([str(run), "--into", str(here)])
    subprocess.run(
        [sys.executable, "-m", "benchmarks.report", str(run), "--into", str(there)],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": "7", "TZ": "Asia/Tokyo"},
        check=True,
        capture_output=True,
    )

    assert _written(here) == _written(there)


def test_what_cannot_be_reported_on_ends_it_with_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = records.write(tmp_path, records.run() | {"loop": 3})

    with pytest.raises(SystemExit) as ended:
        main([str(file), "--into", str(tmp_path / "docs")])

    assert ended.value.code == 2
    assert capsys.readouterr().err == f"{file}: loop should be a text, but is a number\n"
    assert not (tmp_path / "docs").exists()


def test_the_same_question_in_two_files_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = (records.write(tmp_path, records.run(records.parked()), name) for name in ("a", "b"))

    with pytest.raises(SystemExit) as ended:
        main([str(first), str(second), "--into", str(tmp_path / "docs")])

    assert ended.value.code == 2
    assert capsys.readouterr().err == f"{second}: one-key on asyncio is in {first} as well\n"


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = records.write(tmp_path, records.run())

    with pytest.raises(SystemExit) as ended:
        main([str(file), "--into", str(file)])

    assert ended.value.code == 2
    assert capsys.readouterr().err == f"{file}: cannot be written (File exists)\n"
