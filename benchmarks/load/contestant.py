"""Who takes part in the load test."""

from __future__ import annotations

import json
import subprocess
import sys
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path

from benchmarks.builds import ROOT, environment
from benchmarks.load.distribution import Load
from benchmarks.load.measurement import Measurement
from benchmarks.load.plan import Plan
from benchmarks.question import Build

# Whatever it is: all designs get the same requests.
SEED = 1
# Seconds that a process may take on top of ten times those of the run before it is taken for hung.
PATIENCE = 120.0


@dataclass(frozen=True)
class Plans:
    """Plans in files, one at a time: each is large, and drawing it takes about as long as following it."""

    directory: Path

    def file(self, load: Load) -> Path:
        """The file with the plan for `load`."""
        distribution = load.distribution
        file = (
            self.directory / f"{distribution.p50_ms:g}-{distribution.p75_ms:g}-{load.rate}-{load.seconds:g}"
        )
        if not file.exists():
            for earlier in self.directory.iterdir():
                earlier.unlink()
            Plan.draw(load, SEED).write(file)
        return file


@dataclass(frozen=True)
class Contestant(ABC):
    """A design, in one build."""

    design: str
    build: str

    def __str__(self) -> str:
        return f"{self.design}, {self.build}"

    @abstractmethod
    def measure(self, load: Load, plans: Plans) -> Measurement:
        """Put it under load once. Raises RuntimeError when that fails, with what there is to know."""


@dataclass(frozen=True)
class PythonContestant(Contestant):
    """One that runs on an event loop, in a fresh Python process."""

    subject: str
    loop: str
    # The build of purgatory's core that the process imports, even where it has no use for it.
    core: Build

    def measure(self, load: Load, plans: Plans) -> Measurement:
        try:
            finished = subprocess.run(
                [
                    sys.executable,
                    "-m",
                    "benchmarks.load.worker",
                    self.subject,
                    self.loop,
                    str(plans.file(load)),
                ],
                cwd=ROOT,
                env=environment(self.core),
                capture_output=True,
                text=True,
                timeout=PATIENCE + 10 * load.seconds,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise RuntimeError(f"{self} did not end within {error.timeout:.0f} seconds at {load}") from None
        if finished.returncode:
            raise RuntimeError(f"{self} failed at {load}:\n{finished.stderr}")
        return Measurement(**json.loads(finished.stdout))


def python_contestants(loop: str, builds: tuple[Build, ...]) -> list[Contestant]:
    """This library in each build at hand, then the designs of Kafka."""
    return [
        *(PythonContestant("purgatory", build, "purgatory", loop, build) for build in builds),
        PythonContestant("Kafka's present design", "interpreted", "kafka-now", loop, builds[0]),
        PythonContestant("Kafka 0.8's design", "interpreted", "kafka-0.8", loop, builds[0]),
    ]


def generator_alone(loop: str) -> Contestant:
    """What all of these have in common: the generator, with no design to offer its requests to."""
    return PythonContestant("the generator alone", "interpreted", "generator", loop, "interpreted")
