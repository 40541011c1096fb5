"""Processes, and what Linux says they use."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.harness import processes


class Processes:
    """Some processes, which count together."""

    def __init__(self, process_ids: Sequence[int]) -> None:
        self.process_ids = list(process_ids)

    def processor_seconds(self) -> float:
        """What the processes have used, with their threads that have ended."""
        # Linux numbers the processor clock of a process so: see clock_getcpuclockid(3).
        return sum(time.clock_gettime(~each << 3 | 2) for each in self.process_ids)

    def written_bytes(self) -> int:
        """What the processes have sent to the disk, in whole pages."""
        io = (Path(f"/proc/{each}/io").read_text() for each in self.process_ids)
        return sum(int(text.partition("\nwrite_bytes:")[2].split()[0]) for text in io)

    def resident_bytes(self) -> int:
        return sum(map(processes.resident_bytes, self.process_ids))
