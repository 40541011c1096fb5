"""Ports at which nobody listens."""

import errno
import socket
from contextlib import ExitStack, suppress
from random import Random
from typing import Final

# Below the ports that Linux gives to clients: otherwise, while a server is down, a client that tries to
# connect may itself get the port of the server.
_FIRST: Final = 20_000
_LAST: Final = 32_000


def free_ports(count: int, host: str = "127.0.0.1") -> int:
    """Return the first of `count` consecutive ports that are free. Raises OSError if there are none."""
    firsts = range(_FIRST, _LAST - count, count)
    for first in Random().sample(firsts, len(firsts)):
        with suppress(OSError), ExitStack() as probes:
            for port in range(first, first + count):
                probes.enter_context(socket.socket()).bind((host, port))
            return first
    raise OSError(errno.EADDRINUSE, f"{count} consecutive ports between {_FIRST} and {_LAST} are not free")
