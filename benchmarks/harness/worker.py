"""Measures one case once, and prints its sample as JSON: ``python -m benchmarks.harness.worker``.

    python -m benchmarks.harness.worker waits one-key "callback style, collector as advised" purgatory

In a fresh process no case finds the memory as another case left it. By hand, run a profiler on this command.
This module imports neither rich nor matplotlib: their import takes longer than many measurements.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence

import purgatory
from benchmarks.harness.benchmark import Case, Sample
from benchmarks.harness.builds import ROOT, environment, imported_build
from benchmarks.harness.processes import output_of
from benchmarks.harness.setting import Setting, benchmarks_of

MODULE = "benchmarks.harness.worker"
Measure = Callable[[str, str, Case], Sample]


def in_fresh_process(setting: Setting) -> Measure:
    """A function that measures a case of a suite's benchmark once, in a process of its own.

    The function raises RuntimeError, with what the process printed, when that fails.
    """

    def measure(suite: str, benchmark: str, case: Case) -> Sample:
        command = [sys.executable, "-m", MODULE, suite, benchmark, case.section, case.name]
        command += ["--setting", setting.to_json()]
        variables = environment(case.build or setting.builds[0])
        output = output_of(command, f"{benchmark}, {case.section}: {case.name}", env=variables)
        sample: dict[str, float] = json.loads(output)
        return sample

    return measure


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure the case that the command line names."""
    parser = argparse.ArgumentParser(prog=f"python -m {MODULE}", description="Measures one case once.")
    parser.add_argument("suite")
    parser.add_argument("benchmark")
    parser.add_argument("section", help="the section of the case")
    parser.add_argument("name", help="the name of the case")
    parser.add_argument("--setting", type=Setting.from_json, default=Setting(), metavar="JSON")
    options = parser.parse_args(arguments)
    benchmark = benchmarks_of(options.suite)[options.benchmark].benchmark(options.setting)
    named = (options.section, options.name)
    case = next((each for each in benchmark.cases if (each.section, each.name) == named), None)
    if case is None:
        parser.error(f"{benchmark.name} has no case {options.name!r} in a section {options.section!r}")
    if case.build is not None and case.build != imported_build():
        parser.error(
            f"{purgatory.__file__} is not the {case.build} core. PYTHONPATH={ROOT} imports the interpreted "
            f"one, and PYTHONPATH={ROOT}/build/compiled:{ROOT} the compiled one."
        )
    json.dump(case.measure(), sys.stdout)


if __name__ == "__main__":
    main()
