"""The service's command line."""

from __future__ import annotations

import argparse
import errno
import resource
import signal
import socket
import sys
from collections.abc import Sequence
from typing import Final

import uvicorn

from examples.arguments import number, whole
from examples.longpoll.application import application
from examples.longpoll.connection import Connection
from examples.longpoll.limits import Limits
from examples.longpoll.service import Service
from purgatory.web.shutdown import STOP_SIGNALS

CANNOT_LISTEN: Final = 1

LAST_PORT: Final = 65_535

BACKLOG: Final = 4096
"""Connections that may come between two turns of the loop; the rest of a crowd has to try again."""

GRACE: Final = 5
"""Seconds in which clients can take their last answers."""

ADDRESSES: Final = {"chat": "/", "dashboard": "/dashboard/", "metrics": "/metrics", "API": "/openapi.json"}

_DESCRIPTION: Final = """\
Serve topics to record to and to read from by long poll, with a page to chat on.
Everything is kept in memory."""
_EXAMPLES: Final = """\
examples:
  %(prog)s
  curl -d '"hello"' -H 'Content-Type: application/json' localhost:8000/topics/lobby
  curl -i 'localhost:8000/topics/lobby?offset=1&wait=30'
      waits for the next record; the Link in its answer says how to go on
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until told to stop; the exit status."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.port > LAST_PORT:
        parser.error(f"argument --port: must be {LAST_PORT} or less, not {options.port}")
    try:
        limits = Limits(
            pending=options.max_pending,
            wait=options.max_wait,
            topics=options.max_topics,
            connections=options.max_connections,
            session_timeout=options.session_timeout,
            client_timeout=options.client_timeout,
        )
    except ValueError as error:
        parser.error(f"{error}; choose a lower --max-pending, or a higher --max-connections")
    try:
        listener = _listen(options.host, options.port)
    except OSError as error:
        choice = "--port" if error.errno in (errno.EADDRINUSE, errno.EACCES) else "--host"
        print(f"{error}; choose another {choice}", file=sys.stderr)
        return CANNOT_LISTEN
    _allow_files(limits.connections)
    config = uvicorn.Config(
        application(Service(limits)),
        http=Connection,
        ws="none",
        backlog=BACKLOG,
        timeout_graceful_shutdown=GRACE,
        access_log=False,
        log_level="error",
        server_header=False,
    )
    for stop in STOP_SIGNALS:
        # uvicorn handles them while it runs, and at its end raises them again; they have had their effect.
        signal.signal(stop, signal.SIG_IGN)
    Server(config).run([listener])
    return 0


class Server(uvicorn.Server):
    """Says where it is, once it is there and can be stopped."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        host, port = self.servers[0].sockets[0].getsockname()[:2]
        url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
        for name, path in ADDRESSES.items():
            print(f"{name:<10} {url}{path}", flush=True)


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=BACKLOG)


def _allow_files(connections: int) -> None:
    """Each connection is an open file; a process is often allowed 1,024 until it asks for more."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + 1_000
    if soft != resource.RLIM_INFINITY and soft < wanted:
        granted = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (granted, hard))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m examples.longpoll",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--host", default="127.0.0.1", help="where to listen (default: 127.0.0.1)")
    whole(parser.add_argument, "--port", 8000, "the port; 0 is any that is free", least=0)
    defaults = Limits()
    limits = parser.add_argument_group("limits")
    pending = "polls that may wait, fewer than connections; the next is a 503"
    whole(limits.add_argument, "--max-pending", defaults.pending, pending)
    whole(limits.add_argument, "--max-topics", defaults.topics, "topics")
    whole(limits.add_argument, "--max-connections", defaults.connections, "open connections")
    times = parser.add_argument_group("times, in seconds")
    number(times.add_argument, "--max-wait", defaults.wait, "the longest wait of a poll", least=0)
    number(
        times.add_argument,
        "--session-timeout",
        defaults.session_timeout,
        "without a heartbeat for so long, somebody is offline",
        above=0,
    )
    number(
        times.add_argument,
        "--client-timeout",
        defaults.client_timeout,
        "for a client to send a request, or to take an answer",
        above=0,
    )
    return parser
