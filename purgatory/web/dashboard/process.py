"""The process that serves the page."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from secrets import token_hex
from typing import Final

# A host gives the number of a process that has ended to a later one.
_START: Final = token_hex(4)


@dataclass(frozen=True, slots=True)
class Process:
    """A process, and where it runs. No other process has the same `instance`."""

    instance: str
    host: str
    pid: int


def this_process() -> Process:
    """The process that calls this. After a fork, the child is another process."""
    pid = os.getpid()
    return Process(f"{_START}-{pid}", socket.gethostname(), pid)
