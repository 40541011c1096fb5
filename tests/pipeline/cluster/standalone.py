"""A standalone Spark cluster on this machine, from the pip package alone."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyspark

import purgatory
from purgatory.pipeline.java import java_home

_SPARK: Final = Path(pyspark.__file__).parent
_LOOPBACK: Final = "127.0.0.1"
# Each with a core: so many tasks run at a time.
WORKERS: Final = 2
# Seconds.
_PATIENCE: Final = 60.0


@dataclass(frozen=True)
class Cluster:
    """What is running: the master's URL, and each worker's process."""

    url: str
    workers: tuple[int, ...]


@contextmanager
def standalone(directory: Path) -> Iterator[Cluster]:
    """A master and its WORKERS, until the block ends; then none of their processes is left."""
    with java_home() as java, ExitStack() as daemons:
        environment = {
            **os.environ,
            "JAVA_HOME": str(java),
            "SPARK_HOME": str(_SPARK),
            "SPARK_LOCAL_IP": _LOOPBACK,
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
            "SPARK_MASTER_OPTS": "-Dspark.master.rest.enabled=false",
            # What runs these tests is installed on each worker, so to speak.
            "PYTHONPATH": str(Path(purgatory.__file__).parents[1]),
        }
        master = daemons.enter_context(_daemon("master.Master", directory / "master", environment))
        url = _said(directory / "master", r"Starting Spark master at (spark://\S+)", master)
        started = []
        for number in range(WORKERS):
            log = directory / f"worker-{number}"
            arguments = ("--cores", "1", "--memory", "1g", "--work-dir", f"{log}.d", url)
            started.append(
                (log, daemons.enter_context(_daemon("worker.Worker", log, environment, *arguments)))
            )
        for log, worker in started:
            _said(log, f"(Successfully registered with master) {re.escape(url)}", worker)
        yield Cluster(url, tuple(worker.pid for _, worker in started))


def kill(worker: int) -> None:
    """At once, with the executors that it has started."""
    os.killpg(worker, signal.SIGKILL)


@contextmanager
def _daemon(
    name: str, log: Path, environment: Mapping[str, str], *arguments: str
) -> Iterator[subprocess.Popen[bytes]]:
    """One in a session of its own, of which none is left when the block ends."""
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
    """Of the workers of Python, which are in process groups of their own, each ends with its executor."""
    with suppress(ProcessLookupError):
        os.killpg(daemon.pid, signal.SIGKILL)
    daemon.wait()
    deadline = time.monotonic() + _PATIENCE
    while left := members(daemon.pid):
        if time.monotonic() > deadline:
            raise TimeoutError(f"processes {left} have outlived their daemon")
        time.sleep(0.05)


def members(session: int) -> Sequence[int]:
    """The processes of a session that have not ended."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        with suppress(FileNotFoundError, ProcessLookupError):
            # Behind the name, which may have spaces: the state, the parent, the group, the session.
            state, _, _, of, *_ = Path("/proc", name, "stat").read_text().rpartition(")")[2].split()
            if state != "Z" and int(of) == session:
                found.append(int(name))
    return found


def _said(log: Path, pattern: str, daemon: subprocess.Popen[bytes]) -> str:
    """What the group of the pattern matches, as soon as the daemon has said it."""
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline and daemon.poll() is None:
        if found := re.search(pattern, log.read_text()):
            return found[1]
        time.sleep(0.05)
    raise RuntimeError(f"a daemon has not started:\n{log.read_text()}")
