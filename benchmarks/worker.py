"""Measures one contender once, in a process of its own, and prints its sample as JSON.

    python -m benchmarks.worker one-key "callback style, collector as advised" purgatory

In a fresh process no contender finds the memory as another one has left it. By hand, it is what to put
a profiler on. Nothing here may import rich: that would take longer than many a measurement.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Sequence

import purgatory
from benchmarks.builds import ROOT, build, environment
from benchmarks.catalogue import CATALOGUE
from benchmarks.question import Contender, Question, Sample
from benchmarks.setting import Setting


def in_a_fresh_process(setting: Setting) -> Callable[[Question, Contender], Sample]:
    """A way to measure a contender once. Raises RuntimeError, with all it said, when that fails."""

    def measure(question: Question, contender: Contender) -> Sample:
        finished = subprocess.run(
            [
                *(sys.executable, "-m", "benchmarks.worker"),
                *(question.name, contender.section, contender.name, "--setting", setting.to_json()),
            ],
            cwd=ROOT,
            env=environment(contender.build or setting.builds[0]),
            capture_output=True,
            text=True,
            check=False,
        )
        if finished.returncode:
            raise RuntimeError(
                f"{question.name}, {contender.section}: {contender.name} failed:\n{finished.stderr}"
            )
        sample: dict[str, float] = json.loads(finished.stdout)
        return sample

    return measure


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure what the command line says."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.worker", description="Measures one contender once, and prints its sample."
    )
    parser.add_argument("question", choices=CATALOGUE)
    parser.add_argument("section", help="the heading that the contender is under")
    parser.add_argument("name", help="what the contender is called")
    parser.add_argument(
        "--setting", type=Setting.from_json, default=Setting(), metavar="JSON", help="what is not as usual"
    )
    options = parser.parse_args(arguments)
    question = CATALOGUE[options.question].question(options.setting)
    asked = (options.section, options.name)
    contender = next((each for each in question.contenders if (each.section, each.name) == asked), None)
    if contender is None:
        parser.error(f"{question.name} has no contender {options.name!r} in a section {options.section!r}")
    if contender.build is not None and contender.build != build():
        parser.error(
            f"the core imported here is not {contender.build}: {purgatory.__file__}. The compiled one is the "
            "one that is installed, the interpreted one comes with PYTHONPATH=src"
        )
    json.dump(contender.measure(), sys.stdout)


if __name__ == "__main__":
    main()
