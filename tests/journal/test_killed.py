"""A journal after ``kill -9``."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from purgatory.journal.schema import CHECKS, GAPS, OPERATIONS

MAX_ROWS = 200

SERVICE = f"""
import asyncio, pathlib, sys
from purgatory import DelayedOperation, Purgatory
from purgatory.journal import JournalWriter

class Numbered(DelayedOperation[None]):
    def try_complete(self):
        return self.force_complete()

async def main():
    segments = pathlib.Path(sys.argv[1], "operations")
    journal = JournalWriter(sys.argv[1], max_rows={MAX_ROWS})
    async with journal, Purgatory(observers=[journal]) as held:
        for number in range(1_000_000):
            held.try_complete_else_watch(Numbered(1), [number])
            held.check_and_complete(number)
            if number % 20 == 0:
                # Stay at most one batch ahead of the disk, however slow it is.
                while len(list(segments.glob("*.parquet"))) < number // {MAX_ROWS} - 1:
                    await asyncio.sleep(0.001)
                print(number, flush=True)

asyncio.run(main())
"""


@pytest.mark.slow
@pytest.mark.real_time
def test_after_a_kill_every_segment_is_complete_and_only_the_last_rows_are_lost(
    directory: Path, rows: Callable[[str], list[dict[str, Any]]]
) -> None:
    service = subprocess.Popen([sys.executable, "-c", SERVICE, directory], stdout=subprocess.PIPE, text=True)
    assert service.stdout is not None
    ended = 0
    for line in service.stdout:
        ended = int(line) + 1
        if ended > 12 * MAX_ROWS:
            break
    service.kill()
    assert service.wait(30) == -signal.SIGKILL
    service.stdout.close()
    recorded = rows(OPERATIONS)
    # One batch was filling up, and one was being written.
    assert len(recorded) >= ended - 2 * MAX_ROWS
    # Only the end is missing.
    assert [row["keys"] for row in recorded] == [[str(number)] for number in range(len(recorded))]
    assert abs(len(rows(CHECKS)) - len(recorded)) <= MAX_ROWS
    assert rows(GAPS) == []
