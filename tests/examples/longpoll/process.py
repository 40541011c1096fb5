"""The service in processes of its own, as its users run it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

ROOT = Path(__file__).parents[3]


@dataclass(frozen=True, slots=True)
class ServiceProcess:
    """A running service."""

    process: subprocess.Popen[str]
    url: str

    def until_pending(self, polls: int, workers: int) -> list[int]:
        """Wait until `workers` processes have so many polls together, and return the ids of the processes.

        The limit is for a hang alone.
        """
        deadline = time.monotonic() + 240
        # By the process that has answered.
        pending: dict[int, int] = {}
        while len(pending) < workers or sum(pending.values()) != polls:
            assert time.monotonic() < deadline, pending
            # Each request has a connection of its own, which any of the processes may accept.
            try:
                answer = httpx.get(f"{self.url}/dashboard/data", timeout=60).json()
            except httpx.ConnectError:
                # They are still starting.
                time.sleep(0.1)
            else:
                pending[answer["process"]["pid"]] = answer["statistics"]["pending"]
        return list(pending)


@contextmanager
def service_process(*arguments: str) -> Iterator[ServiceProcess]:
    """Run the service on a free port with these arguments. It is stopped at the end if it still runs."""
    command = [sys.executable, "-m", "examples.longpoll", "--port", "0", *arguments]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        try:
            printed = ""
            while (address := re.search(r"running on (http://\S+)", printed)) is None:
                line = process.stdout.readline()
                assert line, printed
                printed += line
            yield ServiceProcess(process, address[1])
        finally:
            # Killed, it would leave its workers behind.
            process.terminate()
        # Empty if the test has read it.
        assert "Traceback" not in process.stdout.read()
