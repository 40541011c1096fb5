"""The time and memory of a Python program, with all the processes that it starts, as Linux counts them."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress

from benchmarks.harness.benchmark import Sample
from benchmarks.harness.processes import ROOT, environment, processor_seconds, stat_fields

# Seconds between two looks.
_EVERY = 0.1
# Indices in `stat_fields`.
_STATE, _PARENT, _SESSION, _VIRTUAL, _RESIDENT = 0, 1, 3, 20, 21


def measured(*arguments: str) -> Sample:
    """Run Python with these arguments, in a session of its own, until no process of that is left.

    The memory is the most that all processes had at a time; what two of them share may count twice.
    Raises RuntimeError, with the output, when the program fails.
    """
    command, env = [sys.executable, *arguments], environment("interpreted")
    with tempfile.TemporaryFile("w+") as output:
        began, reaped = time.perf_counter(), _reaped()
        process = subprocess.Popen(
            command, stdout=output, stderr=subprocess.STDOUT, cwd=ROOT, env=env, start_new_session=True
        )
        try:
            spent, peak = _watched(process)
        finally:
            for left in _processes(process.pid):
                with suppress(ProcessLookupError):
                    os.kill(left, signal.SIGKILL)
            process.wait()
        took = time.perf_counter() - began
        if process.returncode:
            output.seek(0)
            raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}:\n{output.read()}")
    # `spent` misses the time after the last look at a process, and processes between two looks. `_reaped`
    # misses those that no process has waited for, such as a JVM that Python has started.
    spent = max(spent, _reaped() - reaped)
    return {"seconds": took, "processor_seconds": spent, "rss_mib": peak / (1 << 20)}


def _reaped() -> float:
    """Processor seconds of all children that have ended and been waited for, and of theirs."""
    user, system, *_ = resource.getrusage(resource.RUSAGE_CHILDREN)
    return user + system


def _watched(process: subprocess.Popen[bytes]) -> tuple[float, int]:
    spent: dict[int, float] = {}
    peak = 0
    while True:
        ended = process.poll() is not None
        alive = _processes(process.pid)
        spent |= {identity: processor_seconds(fields) for identity, fields in alive.items()}
        # A process that was just forked is as large to the byte as its parent, and shares its memory. It does
        # not count: a JVM of gigabytes forks to set a file's mode.
        virtual = {identity: fields[_VIRTUAL] for identity, fields in alive.items()}
        own = [each for each in alive.values() if virtual.get(int(each[_PARENT])) != each[_VIRTUAL]]
        peak = max(peak, sum(int(fields[_RESIDENT]) for fields in own) * resource.getpagesize())
        if ended and not alive:
            return sum(spent.values()), peak
        time.sleep(_EVERY)


def _processes(session: int) -> Mapping[int, Sequence[str]]:
    """The `stat_fields` of each process of the session, by its identity."""
    found: dict[int, Sequence[str]] = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        # A process may end meanwhile.
        with suppress(FileNotFoundError, ProcessLookupError):
            fields = stat_fields(name)
            if fields[_STATE] != "Z" and int(fields[_SESSION]) == session:
                found[int(name)] = fields
    return found
