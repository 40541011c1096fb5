"""What another process has used, as Linux tells."""

from __future__ import annotations

import os
from pathlib import Path

AVAILABLE = Path("/proc/self/stat").exists()

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_PAGE_SIZE = os.sysconf("SC_PAGE_SIZE")
# In /proc/PID/stat behind the name, which may have spaces, proc(5): the state is the third field of all.
_UTIME, _STIME = 14 - 3, 15 - 3


def processor_seconds(process_id: int) -> float:
    """Of all threads since the start, in steps of a hundredth of a second as a rule."""
    fields = Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[_UTIME]) + int(fields[_STIME])) / _TICKS_PER_SECOND


def resident_bytes(process_id: int) -> int:
    """The memory it has now."""
    return int(Path(f"/proc/{process_id}/statm").read_text().split()[1]) * _PAGE_SIZE
