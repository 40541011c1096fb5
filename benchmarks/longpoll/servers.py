"""Servers to measure, each in a process of its own."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

from benchmarks.builds import ROOT


@dataclass(frozen=True)
class Running:
    """A server to be asked."""

    host: str
    port: int
    process_id: int


@contextmanager
def running(way: str, loop: str) -> Iterator[Running]:
    """A server that waits this way, for as long as the block lasts. RuntimeError when it does not start."""
    with (
        tempfile.TemporaryFile("w+") as complaints,
        subprocess.Popen(
            [sys.executable, "-m", "benchmarks.longpoll.server", way, loop],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=complaints,
            text=True,
        ) as process,
    ):
        assert process.stdout is not None
        try:
            address = urlsplit(process.stdout.readline().strip())
            if address.hostname is None or address.port is None:
                complaints.seek(0)
                raise RuntimeError(f"the server with {way} did not start:\n{complaints.read()}")
            yield Running(address.hostname, address.port, process.pid)
        finally:
            # Not asked to end: it would wait for the polls.
            process.kill()
