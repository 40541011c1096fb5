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
from benchmarks.harness.processes import environment, output_of

# Its log goes to stdout. That is where a failure is told, too.
CALLGRIND = ("valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", "--log-fd=1")


def in_fresh_process(setting: Setting, suite: str, benchmark: str, case: Case) -> Sample:
    """Measure a case once, in a process of its own. RuntimeError, with what that printed, when it fails."""
    command = [sys.executable, "-m", "benchmarks.harness.worker", suite, benchmark, case.section, case.name]
    variables = environment(case.build or setting.builds[0])

    def output(setting: Setting, *counter: str) -> str:
        whole = [*counter, *command, json.dumps(asdict(setting))]
        return output_of(whole, f"{benchmark}, {case.section}: {case.name}", env=variables)

    if setting.instructions:
        # What happens once is in both.
        few, many = 1_000, 3_000
        logs = (output(replace(setting, sizes=(n,), times=n), *CALLGRIND) for n in (few, many))
        less, more = (int(log.partition("Collected : ")[2].split()[0]) for log in logs)
        return {"instructions": (more - less) / (many - few)}
    sample: dict[str, float] = json.loads(output(setting))
    return sample


def main(suite: str, benchmark: str, section: str, name: str, setting: str = "{}") -> None:
    """Measure a case. The setting is JSON, with defaults for what it leaves out."""
    _, cases, _ = benchmarks_of(suite)[benchmark].made(Setting(**json.loads(setting)))
    case = next((each for each in cases if (each.section, each.name) == (section, name)), None)
    if case is None:
        raise SystemExit(f"{benchmark} has no case {name!r} in a section {section!r}")
    if case.build is not None and (case.build == "compiled") != purgatory.COMPILED:
        raise SystemExit(f"PYTHONPATH leads to {purgatory.__file__}, which is not the {case.build} core")
    json.dump(case.measure(), sys.stdout, allow_nan=False)


if __name__ == "__main__":
    main(*sys.argv[1:])
