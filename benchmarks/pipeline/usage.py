"""What a command takes, with all the processes that it starts, as Linux tells."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks.builds import ROOT

AVAILABLE: Final = Path("/proc/self/stat").exists()

# Seconds between two looks.
_EVERY: Final = 0.1
# Characters at the end of what a command said that are worth repeating.
_TAIL: Final = 4000

_TICKS_PER_SECOND: Final = os.sysconf("SC_CLK_TCK")
_PAGE_SIZE: Final = os.sysconf("SC_PAGE_SIZE")
# In /proc/PID/stat behind the name, which may have spaces, proc(5): the state is the third field of all.
_STATE, _PARENT, _SESSION, _UTIME, _STIME = 3 - 3, 4 - 3, 6 - 3, 14 - 3, 15 - 3
_VIRTUAL, _RSS = 23 - 3, 24 - 3
_ZOMBIE: Final = "Z"


@dataclass(frozen=True, slots=True)
class Usage:
    """Seconds until all of it had ended, processor seconds, and bytes at its largest."""

    seconds: float
    processor_seconds: float
    # Of all processes at a time. What two of them share may count twice.
    peak_rss: int


class CommandFailed(RuntimeError):
    """Raised when a command ends with an error; with the end of what it said."""


def measured(command: Sequence[str], environment: Mapping[str, str]) -> Usage:
    """Run it, in a session of its own, until no process of that is left. Raises CommandFailed."""
    with tempfile.TemporaryFile("w+") as said:
        began, reaped = time.perf_counter(), _reaped()
        process = subprocess.Popen(
            command, stdout=said, stderr=subprocess.STDOUT, cwd=ROOT, env=environment, start_new_session=True
        )
        try:
            spent, peak = _watched(process)
        finally:
            for left in _processes(process.pid):
                with suppress(ProcessLookupError):
                    os.kill(left, signal.SIGKILL)
            process.wait()
        took = time.perf_counter() - began
        # What a process takes after the last look at it, and processes between two looks, are missing in the
        # one; in the other what nobody has waited for, as nobody does for a JVM that Python has started.
        spent = max(spent, _reaped() - reaped)
        if process.returncode:
            said.seek(0)
            raise CommandFailed(
                f"{' '.join(command)} ended with {process.returncode}:\n{said.read()[-_TAIL:]}"
            )
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
    found = {identity: fields for identity, fields in _all() if int(fields[_SESSION]) == session}
    return {
        identity: (
            (int(fields[_UTIME]) + int(fields[_STIME])) / _TICKS_PER_SECOND,
            0 if _is_parents_memory(fields, found) else int(fields[_RSS]) * _PAGE_SIZE,
        )
        for identity, fields in found.items()
    }


def _is_parents_memory(fields: Sequence[str], others: Mapping[int, Sequence[str]]) -> bool:
    """So it is until a process that was just forked has become another: as large to the byte.

    A JVM of gigabytes, which forks to set a file's mode, would be counted twice.
    """
    parent = others.get(int(fields[_PARENT]))
    return parent is not None and parent[_VIRTUAL] == fields[_VIRTUAL]


def _all() -> Iterator[tuple[int, Sequence[str]]]:
    for name in os.listdir("/proc"):
        if name.isdigit():
            # It may end while it is looked at.
            with suppress(FileNotFoundError, ProcessLookupError):
                fields = Path("/proc", name, "stat").read_text().rpartition(")")[2].split()
                if fields[_STATE] != _ZOMBIE:
                    yield int(name), fields
