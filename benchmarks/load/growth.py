"""By how much the process grows while something runs."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# Seconds between two looks.
SAMPLED_EVERY = 0.02


@contextmanager
def resident_sizes() -> Iterator[list[int]]:
    """Bytes of the process that are in memory: at first, and then every now and then in a ``with`` block.

    Looked at by the running loop. The list stays empty where there is no /proc, as on macOS.
    """
    try:
        sizes = [_resident()]
    except OSError:
        yield []
        return
    looking = asyncio.get_running_loop().create_task(_look(sizes))
    try:
        yield sizes
    finally:
        looking.cancel()


async def _look(sizes: list[int]) -> None:
    while True:
        await asyncio.sleep(SAMPLED_EVERY)
        sizes.append(_resident())


def _resident() -> int:
    return int(Path("/proc/self/statm").read_bytes().split()[1]) * os.sysconf("SC_PAGE_SIZE")
