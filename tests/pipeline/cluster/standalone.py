"""A standalone Spark cluster on this machine, started from the pip package."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyspark

import purgatory
from purgatory.pipeline.java import java_home

_SPARK: Final = Path(pyspark.__file__).parent
_LOOPBACK: Final = "127.0.0.1"
# Each worker has one core, and runs one task at a time.
WORKERS: Final = 2
# Seconds.
_TIMEOUT: Final = 60.0


@dataclass(frozen=True)
class Cluster:
    """A running cluster: the URL of its master, and the process of each worker."""

    url: str
    workers: tuple[int, ...]


@contextmanager
def standalone(directory: Path) -> Iterator[Cluster]:
    """Run a master and its WORKERS until the block ends. Then all their processes have ended."""
    with java_home() as java, ExitStack() as daemons:
        environment = {
            **os.environ,
            "JAVA_HOME": str(java),
            "SPARK_HOME": str(_SPARK),
            "SPARK_LOCAL_IP": _LOOPBACK,
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
            "SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false",
            # The workers import the package from the same path.
            "PYTHONPATH": str(Path(purgatory.__file__).parents[1]),
        }
        master = daemons.enter_context(_daemon("master.Master", directory / "master", environment))
        url = _wait_for_log(directory / "master", r"Starting Spark master at (spark://\S+)", master)
        started = []
        for number in range(WORKERS):
            log = directory / f"worker-{number}"
            arguments = ("--cores", "1", "--memory", "1g", "--work-dir", f"{log}.d", url)
            started.append(
                (log, daemons.enter_context(_daemon("worker.Worker", log, environment, *arguments)))
            )
        for log, worker in started:
            _wait_for_log(log, f"(Successfully registered with master) {re.escape(url)}", worker)
        yield Cluster(url, tuple(worker.pid for _, worker in started))


def kill(worker: int) -> None:
    """Kill a worker at once, with the executors that it started."""
    os.killpg(worker, signal.SIGKILL)


@contextmanager
def suspended(workers: Collection[int]) -> Iterator[None]:
    """Suspend the workers, with the executors that they started, until the block ends."""
    for worker in workers:
        os.killpg(worker, signal.SIGSTOP)
    try:
        yield
    finally:
        for worker in workers:
            # The block may have killed the worker.
            with suppress(ProcessLookupError):
                os.killpg(worker, signal.SIGCONT)


@contextmanager
def _daemon(
    name: str, log: Path, environment: Mapping[str, str], *arguments: str
) -> Iterator[subprocess.Popen[bytes]]:
    """A daemon in its own session. All its processes have ended when the block ends."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            [
                *(str(_SPARK / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}"),
                *("--host", _LOOPBACK, "--port", "0", "--webui-port", "0", *arguments),
            ],
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        _end(process)


def _end(daemon: subprocess.Popen[bytes]) -> None:
    """Kill a daemon and wait for its session to end. Python workers end with their executor."""
    with suppress(ProcessLookupError):
        os.killpg(daemon.pid, signal.SIGKILL)
    daemon.wait(_TIMEOUT)
    deadline = time.monotonic() + _TIMEOUT
    while left := members(daemon.pid):
        if time.monotonic() > deadline:
            raise TimeoutError(f"processes {left} are still running after their daemon ended")
        time.sleep(0.05)


def members(session: int) -> Sequence[int]:
    """The running processes of a session."""
    processes = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        with suppress(FileNotFoundError, ProcessLookupError):
            # After the name, which may contain spaces: state, parent, group, session.
            state, _, _, of, *_ = Path("/proc", name, "stat").read_text().rpartition(")")[2].split()
            if state != "Z" and int(of) == session:
                processes.append(int(name))
    return processes


def _wait_for_log(log: Path, pattern: str, daemon: subprocess.Popen[bytes]) -> str:
    """Wait until the log matches the pattern. Returns the matched group."""
    deadline = time.monotonic() + _TIMEOUT
    while time.monotonic() < deadline and daemon.poll() is None:
        if found := re.search(pattern, log.read_text()):
            return found[1]
        time.sleep(0.05)
    raise RuntimeError(f"a daemon did not start:\n{log.read_text()}")
