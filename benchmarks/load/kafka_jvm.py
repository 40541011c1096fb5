"""Kafka's own load test, on a JVM: `kafka.TestPurgatoryPerformance` of Kafka 0.9.0.1."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass

from benchmarks.load import kafka_package
from benchmarks.load.contestant import PATIENCE, Contestant, Plans
from benchmarks.load.distribution import Load
from benchmarks.load.kafka_package import KafkaMissing
from benchmarks.load.measurement import Measurement

TEST = "kafka.TestPurgatoryPerformance"
# A JVM that has just started is slow for about a second. Each run has a fresh one, so it takes this at least.
SECONDS = 3.0
# The comment lines name the columns; those after these, on the JVM's collectors, vary.
COLUMNS = "# <elapsed time ms>\t<target rate>\t<actual rate>\t<process cpu time ms>\t"


@dataclass(frozen=True)
class KafkaJvm(Contestant):
    """The test draws requests of its own, from the same distributions.

    Its rate is that of the generator thread alone; lateness, memory and watch lists it does not tell. What
    its just-in-time compiler takes is in the figures.
    """

    # What comes before the class and its options.
    command: tuple[str, ...]
    pinned: bool

    def measure(self, load: Load, plans: Plans) -> Measurement:
        requests = round(load.rate * max(SECONDS, load.seconds))
        try:
            finished = subprocess.run(
                [*self.command, TEST, *options(load, requests)],
                capture_output=True,
                text=True,
                timeout=PATIENCE + 10 * max(SECONDS, load.seconds),
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise RuntimeError(f"{TEST} did not end within {error.timeout:.0f} seconds at {load}") from None
        if finished.returncode:
            raise RuntimeError(f"{TEST} failed at {load}:\n{finished.stderr}")
        return parse(finished.stdout, requests)


def kafka_jvm() -> KafkaJvm:
    """The test, ready to run; pinned to one core where that can be done, to compare with one event loop.

    Raises KafkaMissing when there is no Java, or Kafka cannot be fetched.
    """
    java = shutil.which("java")
    # macOS has one that only says where to get Java.
    if java is None or subprocess.run([java, "-version"], capture_output=True, check=False).returncode:
        raise KafkaMissing("Java is not installed")
    command: tuple[str, ...] = (java, "-Duser.language=en", "-cp", str(kafka_package.jars() / "*"))
    taskset = shutil.which("taskset")
    if taskset is not None:
        # Not the first core: it is the one that handles most interrupts.
        command = (taskset, "--cpu-list", str(max(os.sched_getaffinity(0))), *command)
    return KafkaJvm("Kafka 0.9.0.1 itself", "JVM", command, pinned=taskset is not None)


def options(load: Load, requests: int) -> list[str]:
    """As the test takes them: times are in milliseconds, and requests carry no data."""
    distribution = load.distribution
    named = {
        "num": requests,
        "rate": load.rate,
        "keys": distribution.keys,
        "pct50": f"{distribution.p50_ms:g}",
        "pct75": f"{distribution.p75_ms:g}",
        "timeout": f"{distribution.timeout_ms:.0f}",
        "size": 0,
    }
    return [word for name, value in named.items() for word in (f"--{name}", str(value))]


def parse(output: str, requests: int) -> Measurement:
    """The one line of figures that the test prints. Raises RuntimeError when there is no such line."""
    lines = output.splitlines()
    figures = [line for line in lines if line and not line.startswith("#")]
    if not any(line.startswith(COLUMNS) for line in lines) or len(figures) != 1:
        raise RuntimeError(f"{TEST} printed something unknown:\n{output}")
    try:
        _, target, achieved, cpu_ms = map(float, figures[0].split("\t")[:4])
    except ValueError:
        raise RuntimeError(f"{TEST} printed something unknown:\n{output}") from None
    return Measurement(
        achieved=achieved,
        # The rates are those of the last arrival, as drawn and as it was.
        behind_ms=(requests / achieved - requests / target) * 1e3,
        sent=requests,
        # -1 where the JVM does not tell it.
        cpu_seconds=cpu_ms / 1e3 if cpu_ms >= 0 else None,
    )
