"""Ports at which nobody listens."""

import errno
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from random import Random
from typing import Final

# Below the ports that Linux gives to clients: otherwise, while a server is down, a client that tries to
# connect may itself get the port of the server.
_FIRST: Final = 20_000
_LAST: Final = 32_000


def free_ports(count: int, host: str = "127.0.0.1") -> int:
    """Return the first of `count` consecutive ports that are free. Raises OSError if there are none."""
    with reserved_ports(count, host) as first:
        return first


@contextmanager
def reserved_ports(count: int, host: str = "127.0.0.1") -> Iterator[int]:
    """Keep `count` consecutive free ports, and yield the first of them. Raises OSError if there are none.

    On Linux, only a server that sets SO_REUSEADDR can listen at such a port. Java's servers set it. So nobody
    else takes the port while such a server starts, or starts again.
    """
    firsts = range(_FIRST, _LAST - count, count)
    for first in Random().sample(firsts, len(firsts)):
        with ExitStack() as probes:
            try:
                for port in range(first, first + count):
                    probe = probes.enter_context(socket.socket())
                    probe.bind((host, port))
                    # Two sockets that both set it before they are bound could have the same port.
                    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            except OSError:
                continue
            yield first
            return
    raise OSError(errno.EADDRINUSE, f"{count} consecutive ports between {_FIRST} and {_LAST} are not free")
