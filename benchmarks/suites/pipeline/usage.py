"""The time and memory of a command, with all the processes that it starts, as Linux counts them."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from benchmarks.harness.processes import ROOT, processor_seconds, resident_bytes, stat_fields

# Seconds between two looks.
_EVERY = 0.1
# The characters at the end of a command's output that an error repeats.
_TAIL = 4000
# Indices in `stat_fields`.
_STATE, _PARENT, _SESSION, _VIRTUAL = 0, 1, 3, 20


@dataclass(frozen=True, slots=True)
class Usage:
    """Seconds until all of it had ended, processor seconds, and bytes at its largest."""

    seconds: float
    processor_seconds: float
    # Of all processes at a time. Memory that two of them share may count twice.
    peak_rss: int


class CommandFailed(RuntimeError):
    """Raised when a command ends with an error; with the end of its output."""


def measured(command: Sequence[str], environment: Mapping[str, str]) -> Usage:
    """Run a command in a session of its own until no process of that is left. Raises CommandFailed."""
    with tempfile.TemporaryFile("w+") as output:
        began, reaped = time.perf_counter(), _reaped()
        process = subprocess.Popen(
            command,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=ROOT,
            env=environment,
            start_new_session=True,
        )
        try:
            spent, peak = _watched(process)
        finally:
            for left in _processes(process.pid):
                with suppress(ProcessLookupError):
                    os.kill(left, signal.SIGKILL)
            process.wait()
        took = time.perf_counter() - began
        # The first figure misses the time after the last look at a process, and processes between two looks;
        # the second one misses those that no process has waited for, such as a JVM that Python has started.
        spent = max(spent, _reaped() - reaped)
        if process.returncode:
            output.seek(0)
            shown = output.read()[-_TAIL:]
            raise CommandFailed(f"{' '.join(command)} ended with {process.returncode}:\n{shown}")
    return Usage(took, spent, peak)


def _reaped() -> float:
    """Processor seconds of all children that have ended and been waited for, and of theirs."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _watched(process: subprocess.Popen[bytes]) -> tuple[float, int]:
    spent: dict[int, float] = {}
    peak = 0
    while True:
        ended = process.poll() is not None
        alive = _processes(process.pid)
        spent |= {identity: seconds for identity, (seconds, _) in alive.items()}
        peak = max(peak, sum(size for _, size in alive.values()))
        if ended and not alive:
            return sum(spent.values()), peak
        time.sleep(_EVERY)


def _processes(session: int) -> Mapping[int, tuple[float, int]]:
    """Processor seconds and bytes of each process of the session, by its identity."""
    found: dict[int, tuple[Sequence[str], int]] = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        # A process may end meanwhile.
        with suppress(FileNotFoundError, ProcessLookupError):
            fields = stat_fields(name)
            if fields[_STATE] != "Z" and int(fields[_SESSION]) == session:
                found[int(name)] = fields, resident_bytes(name)

    def parents_memory(fields: Sequence[str]) -> bool:
        """Whether the process was just forked, as large to the byte as its parent.

        A JVM of gigabytes, which forks to set a file's mode, would be counted twice.
        """
        parent = found.get(int(fields[_PARENT]))
        return parent is not None and parent[0][_VIRTUAL] == fields[_VIRTUAL]

    return {
        identity: (processor_seconds(fields), 0 if parents_memory(fields) else size)
        for identity, (fields, size) in found.items()
    }
