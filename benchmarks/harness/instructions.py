"""Counts the processor's instructions between the marks of a program, by valgrind."""

import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.harness.processes import output_of


def mark() -> None:
    """Begin to count anew. Valgrind writes its count down at each call of this function of the C library."""
    os.getppid()


def counted(command: Sequence[str], name: str, *, env: Mapping[str, str] | None = None) -> list[int]:
    """Run a program. Returns the instructions from each of its marks to the next one.

    One program is enough for many counts, because it takes seconds to start Python under valgrind.
    """
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory, "count")
        callgrind = ["valgrind", "--tool=callgrind", "--dump-before=getppid", f"--callgrind-out-file={file}"]
        # Its log goes to stdout. That is where a failure is told, too.
        output_of([*callgrind, "--log-fd=1", *command], name, env=env)
        counts: list[int] = []
        # The first count is of all that is before the first mark, and the last one has no number.
        while (part := file.with_suffix(f".{len(counts) + 2}")).exists():
            total = re.search(r"^totals: (\d+)$", part.read_text(), re.MULTILINE)
            assert total, f"{part} has no total"
            counts.append(int(total[1]))
        return counts
