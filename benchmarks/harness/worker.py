"""Measures one case once, and prints its sample as JSON: ``python -m benchmarks.harness.worker``.

    python -m benchmarks.harness.worker waits one-key "callback style, collector as advised" purgatory

In a fresh process no case finds the memory as another case left it. By hand, run a profiler on this command.
This module imports neither rich nor matplotlib: their import takes longer than many measurements.
"""

import json
import sys
from dataclasses import asdict, replace

import purgatory
from benchmarks.harness.benchmark import Case, Sample, Setting, benchmarks_of
from benchmarks.harness.instructions import counted, mark
from benchmarks.harness.processes import environment, output_of

# How often a case does its work where its instructions are counted. What a measurement does once is in both.
FEW, MANY = 1_000, 3_000


def in_fresh_process(setting: Setting, suite: str, benchmark: str, case: Case) -> Sample:
    """Measure a case once, in a process of its own. RuntimeError, with what that printed, when it fails."""
    worker = [sys.executable, "-m", "benchmarks.harness.worker", suite, benchmark, case.section, case.name]
    command, name = [*worker, json.dumps(asdict(setting))], f"{benchmark}, {case.section}: {case.name}"
    variables = environment(case.build or setting.builds[0])
    if setting.instructions:
        _, less, more = counted(command, name, env=variables)
        return {"instructions": (more - less) / (MANY - FEW)}
    sample: dict[str, float] = json.loads(output_of(command, name, env=variables))
    return sample


def main(suite: str, benchmark: str, section: str, name: str, setting: str = "{}") -> None:
    """Measure a case. The setting is JSON, with defaults for what it leaves out."""
    given = Setting(**json.loads(setting))
    if not given.instructions:
        case = _case(given, suite, benchmark, section, name)
        json.dump(case.measure(), sys.stdout, allow_nan=False)
        return
    # The first one imports what it needs.
    for times in (FEW, FEW, MANY):
        case = _case(replace(given, sizes=(times,), times=times), suite, benchmark, section, name)
        mark()
        case.measure()
    mark()


def _case(setting: Setting, suite: str, benchmark: str, section: str, name: str) -> Case:
    _, cases, _ = benchmarks_of(suite)[benchmark].made(setting)
    case = next((each for each in cases if (each.section, each.name) == (section, name)), None)
    if case is None:
        raise SystemExit(f"{benchmark} has no case {name!r} in a section {section!r}")
    if case.build is not None and (case.build == "compiled") != purgatory.COMPILED:
        raise SystemExit(f"PYTHONPATH leads to {purgatory.__file__}, which is not the {case.build} core")
    return case


if __name__ == "__main__":
    main(*sys.argv[1:])
