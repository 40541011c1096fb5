"""A run of the benchmarks, read back from the file that it was written to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.question import Answer, Column, Contender, Question, Sample, Table
from benchmarks.report import document
from benchmarks.report.document import ReportError, Value
from benchmarks.report.load_test import LoadTest, load_test


@dataclass(frozen=True, eq=False)
class Run:
    """What was measured in one run, and what is needed to judge it."""

    file: Path
    written: str
    # None for one outside of a checkout.
    commit: str | None
    # None for the suite's own, which `loop` and `full` tell.
    command: str | None
    loop: str
    # Whether the questions were asked in full.
    full: bool
    repetitions: int
    machine: str
    python: str
    # Those that are installed, with their versions.
    packages: Mapping[str, str]
    answers: tuple[Answer, ...]
    load: LoadTest | None

    @property
    def origin(self) -> str:
        """When and from what it comes, in a phrase."""
        commit = f"commit {self.commit}" if self.commit else "outside of a checkout"
        return f"Measured on {self.loop}, {self.written.partition('T')[0]}, {commit}"

    @property
    def environment(self) -> str:
        """On what it ran, in a phrase."""
        packages = ", ".join(f"{name} {version}" for name, version in self.packages.items())
        return f"Python {self.python}, {packages}; {self.machine}; up to {self.repetitions} repetitions"


def read(path: Path) -> Run:
    """The run that was written to `path`. Raises ReportError when that does not hold one."""
    record = document.read(path)
    if not isinstance(record.content, dict) or not {"questions", "load"} & record.content.keys():
        raise ReportError(f"{path}: is no record of the benchmarks: it has neither 'questions' nor 'load'")
    return Run(
        file=path,
        written=record["written"].text(),
        commit=record["commit"].note() or None,
        command=record["command"].note() or None if "command" in record else None,
        loop=record["loop"].text(),
        full="questions" in record and record["full"].flag(),
        repetitions=round(record["repetitions"].number()),
        machine=_machine(record["machine"]),
        # Without the compiler and the date of the build.
        python=record["python"].text().split()[0],
        packages={name: value.note() for name, value in record["packages"].members() if value.note()},
        answers=tuple(map(_answer, record["questions"].items())) if "questions" in record else (),
        load=load_test(record["load"]) if "load" in record else None,
    )


def _machine(machine: Value) -> str:
    gibibytes = machine["memory_bytes"].number() / 2**30
    return (
        f"{machine['processor'].text()}, {machine['cores'].number():.0f} cores, {gibibytes:.0f} GiB, "
        f"{machine['system'].text()}"
    )


def _answer(question: Value) -> Answer:
    entries = question["contenders"].items()
    samples = {
        Contender(entry["section"].text(), entry["name"].text(), _measured_already): _samples(
            entry["samples"]
        )
        for entry in entries
    }
    if len(samples) < len(entries):
        raise ReportError(f"{question.file}: {question.where}.contenders names the same one twice")
    tables = tuple(map(_table, question["tables"].items()))
    asked = Question(
        question["name"].text(), question["summary"].text(), tuple(samples), tables, patience=0.0
    )
    return Answer(asked, samples)


def _samples(samples: Value) -> list[Sample]:
    return [{metric: figure.number() for metric, figure in sample.members()} for sample in samples.items()]


def _table(table: Value) -> Table:
    columns = tuple(
        Column(column["metric"].text(), column["heading"].text(), column["spread"].flag())
        for column in table["columns"].items()
    )
    if not columns:
        raise table["columns"].wrong("a list of at least one column")
    return Table(table["title"].text(), columns, table["note"].note())


def _measured_already() -> Sample:
    raise NotImplementedError
