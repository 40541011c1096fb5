"""A run is read back as it was measured; what is no run is refused in plain words."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks.report.document import ReportError
from benchmarks.report.run import Run, read
from tests.benchmarks.report import records
from tests.benchmarks.report.records import Record


def test_the_circumstances_are_told(tmp_path: Path) -> None:
    run = read(records.write(tmp_path, records.run()))

    assert run.origin == "Measured on asyncio, 2026-11-21, commit 63f087b"
    assert run.environment == (
        "Python 3.11.7, anyio 4.16.0, purgatory 0.1.0; EPYC, 2 cores, 24 GiB, Linux-6.1; up to 2 repetitions"
    )


def test_a_run_from_outside_of_a_checkout_says_so(tmp_path: Path) -> None:
    run = read(records.write(tmp_path, records.run() | {"commit": None}))

    assert run.origin.endswith("outside of a checkout")


def test_answers_have_their_figures_and_ratios(tmp_path: Path) -> None:
    (answer,) = read(records.write(tmp_path, records.run(records.parked()))).answers
    purgatory, future, *_, unmeasured = answer.question.contenders

    assert answer.figures(future, "us") == [4.0, 6.0]
    assert answer.reference(future) == purgatory
    assert answer.ratios(future, "us") == [4.0, 3.0]
    assert answer.ratios(unmeasured, "us") == []


def _read(directory: Path, record: object) -> Run:
    return read(records.write(directory, record))


def _complaint(directory: Path, record: object) -> str:
    with pytest.raises(ReportError) as refused:
        _read(directory, record)
    message = str(refused.value)
    file = f"{directory / 'run.json'}: "
    assert message.startswith(file)
    return message.removeprefix(file)


@pytest.mark.parametrize("text", ["", "{", "written: yesterday", "\udcff"])
def test_what_is_not_json_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "run.json"
    file.write_bytes(text.encode(errors="surrogateescape"))

    with pytest.raises(ReportError, match=r"run\.json: is not JSON \("):
        read(file)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ReportError, match=r"run\.json: cannot be read \(No such file or directory\)"):
        read(tmp_path / "run.json")


@pytest.mark.parametrize("record", [{}, {"machine": {}}, [], 7, None])
def test_json_of_something_else_is_refused(tmp_path: Path, record: object) -> None:
    complaint = _complaint(tmp_path, record)

    assert complaint == "is no record of the benchmarks: it has neither 'questions' nor 'load'"


@pytest.mark.parametrize("key", ["written", "commit", "loop", "repetitions", "machine", "python", "packages"])
def test_a_missing_key_is_named(tmp_path: Path, key: str) -> None:
    record = records.run()
    del record[key]

    assert _complaint(tmp_path, record) == f"{key} is missing"


def _spoil(record: Record, path: str, value: object) -> Record:
    *way, last = (int(step) if step.isdigit() else step for step in path.split("."))
    inside: Record = record
    for step in way:
        inside = inside[step]  # type: ignore[index]  # a step is a key or, of a list, a number
    inside[last] = value  # type: ignore[index]  # the same
    return record


COLUMNS = "questions.0.tables.0.columns"
SAMPLE = "questions.0.contenders.1.samples.0"
POINT = "load.distributions.0.curves.0.points.0"


@pytest.mark.parametrize(
    ("path", "value", "complaint"),
    [
        ("machine.cores", "two", "should be a number, but is a text"),
        ("repetitions", True, "should be a number, but is true or false"),
        ("loop", "", "should be a text, but is empty"),
        ("questions", {}, "should be a list, but is an object"),
        ("questions.0", [7], "should be an object, but is a list"),
        ("questions.0.name", None, "should be a text, but is null"),
        (COLUMNS, [], "should be a list of at least one column, but is empty"),
        (f"{COLUMNS}.1.spread", 1, "should be true or false, but is a number"),
        (f"{SAMPLE}.us", "4", "should be a number, but is a text"),
        (f"{SAMPLE}.us", float("nan"), "should be a finite number, but is a number"),
        ("load.kafka.available", None, "should be true or false, but is null"),
        (f"{POINT}.achieved", 7, "should be a list, but is a number"),
    ],
)
def test_a_value_that_is_something_else_is_named(
    tmp_path: Path, path: str, value: object, complaint: str
) -> None:
    record = records.run(records.parked(), load=records.saturating())

    place = re.sub(r"\.(\d+)", r"[\1]", path)
    assert _complaint(tmp_path, _spoil(record, path, value)) == f"{place} {complaint}"


def test_a_contender_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    record = records.run(records.parked())
    record["questions"][0]["contenders"][1]["name"] = "purgatory"

    assert _complaint(tmp_path, record) == "questions[0].contenders names the same one twice"


def test_what_is_missing_within_is_named_with_its_place(tmp_path: Path) -> None:
    record = records.run(records.parked())
    del record["questions"][0]["contenders"][3]["samples"]

    assert _complaint(tmp_path, record) == "questions[0].contenders[3].samples is missing"
