"""The service as a process of its own, and what one can see of that from outside."""

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
class LiveService:
    """A running one."""

    process: subprocess.Popen[str]
    url: str

    @property
    def port(self) -> int:
        return cast(int, httpx.URL(self.url).port)

    @property
    def memory(self) -> int:
        """Bytes resident now."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        resident = re.search(r"VmRSS:\s+(\d+) kB", status)
        assert resident is not None
        return int(resident[1]) * 1024

    def pending(self, purgatory: str) -> int:
        return self._figure(rf'purgatory_pending\w*{{purgatory="{purgatory}"}}')

    def ended(self, purgatory: str, outcome: str) -> int:
        return self._figure(rf'purgatory_operations_total{{outcome="{outcome}",purgatory="{purgatory}"}}')

    def _figure(self, series: str) -> int:
        metrics = httpx.get(f"{self.url}/metrics").text
        figure = re.search(rf"^{series} (\d+)", metrics, re.MULTILINE)
        assert figure is not None, metrics
        return int(figure[1])

    def until(self, condition: Callable[[], object], seconds: float = 30.0) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, "it does not come true"
            time.sleep(0.02)


@contextmanager
def live_service(*arguments: str) -> Iterator[LiveService]:
    """Run it on any port, with these arguments. It is killed at the end if it has not ended by then."""
    command = [sys.executable, "-m", "examples.longpoll", "--port", "0", *arguments]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            assert process.stdout is not None
            first = process.stdout.readline()
            address = re.search(r"http://[^/\s]+", first)
            assert address is not None, first + process.stdout.read()
            yield LiveService(process, address[0])
        finally:
            process.kill()
        # A test may have read it itself.
        assert "Traceback" not in process.stdout.read()
