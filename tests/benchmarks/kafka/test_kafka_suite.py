"""Beside Kafka's own purgatory: what the Java program is asked for, its figures, and the table of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from benchmarks import command
from benchmarks.harness import record
from benchmarks.harness.benchmark import Result, Row, Setting, Table, benchmarks_of, spreads
from benchmarks.harness.processes import ROOT
from benchmarks.suites import kafka
from benchmarks.suites.kafka import published

SETTING = Setting(builds=("interpreted",), sizes=(40, 20), times=20, seconds=0.02)
KEPT = ROOT / "docs" / "benchmarks" / "runs" / "kafka.json"
needs_affinity = pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="only Linux pins a process")


def program(directory: Path, name: str, script: str) -> None:
    """An executable that runs a shell script."""
    path = directory / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


@pytest.fixture
def bin_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only place where programs are found, with empty directories for the jars and the classes."""
    for name in ("bin", "jars", "classes"):
        tmp_path.joinpath(name).mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setattr(kafka, "JARS", tmp_path / "jars")
    monkeypatch.setattr(kafka, "CLASSES", tmp_path / "classes")
    return tmp_path / "bin"


@pytest.mark.parametrize("missing", ["javac", "jars"])
def test_without_jars_or_a_jdk_it_says_in_one_line_what_to_run(missing: str, bin_directory: Path) -> None:
    # The record names the commit.
    program(bin_directory, "git", "exit 0")
    if missing == "jars":
        program(bin_directory, "javac", "exit 0")
    else:
        (kafka.JARS / ".built").touch()
    with pytest.raises(SystemExit) as error:
        command.main(["kafka"])
    assert str(error.value) == "the suite kafka needs a JDK, and Kafka's jars: run `make kafka`"


def test_the_program_is_compiled_once_and_again_when_its_source_is_newer_and_a_refusal_is_shown(
    bin_directory: Path,
) -> None:
    compiled = kafka.CLASSES / "KafkaPurgatory.class"
    (kafka.JARS / ".built").touch()
    program(bin_directory, "javac", f'echo "$@" >> {bin_directory}/calls; echo > {compiled}')
    for _ in range(2):
        kafka.prepare()
    call = f"-d {kafka.CLASSES} -cp {kafka.JARS}/* {kafka.SOURCE}\n"
    assert (bin_directory / "calls").read_text() == call
    os.utime(compiled, (0, 0))
    kafka.prepare()
    assert (bin_directory / "calls").read_text() == call * 2
    os.utime(compiled, (0, 0))
    program(bin_directory, "javac", "echo cannot find symbol >&2; exit 1")
    with pytest.raises(RuntimeError, match=r"javac KafkaPurgatory\.java failed:\ncannot find symbol"):
        kafka.prepare()


@needs_affinity
@pytest.mark.parametrize(
    ("name", "works"),
    [
        ("kafka-parking", ["parking 1 20", "parking 1 40", "parking 3 20", "parking 3 40"]),
        ("kafka-steady-state", ["turnover 1 40", "turnover 3 40"]),
        ("kafka-expiry", ["expiry 40", "expiry 20"]),
        ("kafka-timers", ["timers 40"]),
        ("kafka-memory", ["memory 1 40", "memory 3 40"]),
        ("kafka-stale", ["stale 40"]),
    ],
)
def test_the_program_is_asked_for_each_work_on_one_core(
    name: str, works: list[str], bin_directory: Path
) -> None:
    calls = bin_directory / "calls"
    program(bin_directory, "java", f'echo "$@" >> {calls}; echo us $(/usr/bin/nproc)')
    cores = os.sched_getaffinity(0)
    for case in benchmarks_of("kafka")[name].made(SETTING)[1]:
        if case.name == kafka.KAFKA:
            assert set(case.measure().values()) == {1.0}
    assert os.sched_getaffinity(0) == cores
    asked = [line.partition("KafkaPurgatory ")[2].split() for line in calls.read_text().splitlines()]
    assert [[work, *numbers] for work, _, _, *numbers in asked] == [work.split() for work in works]
    assert {(float(warm_up), float(seconds)) for _, warm_up, seconds, *_ in asked} == {
        (kafka.WARM_UP * 0.02, 0.02)
    }


def test_the_rows_with_the_worst_ratio_to_kafka_come_first_and_none_is_to_zero() -> None:
    costs = {kafka.KAFKA: (1.0, 2.0, 1.0), "ours": (1.5, 2.0, 1.2), "ready": (0.5, 1.0, 0.5)}
    rows = [Row("trip", name, None, [{"us": us, "early": 0} for us in each]) for name, each in costs.items()]
    columns = spreads(early="early", us="µs", per_second="per second")
    assert published.table([Result("kafka", "", "", [Table("", columns)], rows)]) == (
        "|  | Kafka, on the JVM | ours | ready |\n"
        "| --- | ---: | ---: | ---: |\n"
        "| trip, µs | 1.00 (1.00-2.00) | 1.50 (1.20-2.00)<br>1.20 times | 0.50 (0.50-1.00)<br>0.50 times |\n"
        "| trip, early | 0.00 (0.00-0.00) | 0.00 (0.00-0.00) | 0.00 (0.00-0.00) |\n"
    )


def test_the_published_table_is_that_of_the_kept_run_between_its_marks(tmp_path: Path) -> None:
    page, runs = tmp_path / "page.md", [record.read(KEPT)]
    published.fill(page, runs)
    assert not page.exists()
    for text in ("# Other\n", (ROOT / "docs" / "performance.md").read_text()):
        page.write_text(text)
        published.fill(page, runs)
        assert page.read_text() == text
    page.write_text("# Page\n\n<!-- beside Kafka -->\n\n<!-- end -->\n\nMore.\n")
    published.fill(page, runs)
    table = published.table(runs[0].benchmarks)
    assert page.read_text() == f"# Page\n\n<!-- beside Kafka -->\n\n{table}\n<!-- end -->\n\nMore.\n"
