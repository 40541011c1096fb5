"""The service in a process of its own, as its users run it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import httpx

ROOT = Path(__file__).parents[3]


@dataclass(frozen=True, slots=True)
class ServiceProcess:
    """A running service."""

    process: subprocess.Popen[str]
    url: str

    @property
    def port(self) -> int:
        return cast(int, httpx.URL(self.url).port)

    @property
    def memory(self) -> int:
        """The bytes of the process that are resident now."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        resident = re.search(r"VmRSS:\s+(\d+) kB", status)
        assert resident is not None
        return int(resident[1]) * 1024

    def pending(self, purgatory: str) -> int:
        return self._metric(rf'purgatory_pending\w*{{purgatory="{purgatory}"}}')

    def finished(self, purgatory: str, outcome: str) -> int:
        return self._metric(rf'purgatory_operations_total{{outcome="{outcome}",purgatory="{purgatory}"}}')

    def _metric(self, series: str) -> int:
        metrics = httpx.get(f"{self.url}/metrics", timeout=30).text
        value = re.search(rf"^{series} (\d+)", metrics, re.MULTILINE)
        assert value is not None, metrics
        return int(value[1])

    def until(self, condition: Callable[[], object], seconds: float = 60.0) -> None:
        """Wait for a condition that has to become true; the limit is for a hang alone."""
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, "the condition did not become true"
            time.sleep(0.02)


@contextmanager
def service_process(*arguments: str) -> Iterator[ServiceProcess]:
    """Run the service on a free port with these arguments. It is killed at the end if it still runs."""
    command = [sys.executable, "-m", "examples.longpoll", "--port", "0", *arguments]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            assert process.stdout is not None
            first = process.stdout.readline() + process.stdout.readline()
            address = re.search(r"http://[^/\s]+", first)
            assert address is not None, first + process.stdout.read()
            yield ServiceProcess(process, address[0])
        finally:
            process.kill()
        # Empty if the test has read it.
        assert "Traceback" not in process.stdout.read()
