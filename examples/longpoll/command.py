"""The command that runs the service: ``python -m examples.longpoll``."""

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
"""Connections that the kernel queues until the loop accepts them; clients beyond that have to try again."""

STOP_TIMEOUT: Final = 5
"""Seconds that clients have to read their last answers when the service stops."""

PATHS: Final = {"chat": "/", "dashboard": "/dashboard/", "metrics": "/metrics", "API": "/openapi.json"}

_DESCRIPTION: Final = """\
Serve topics over HTTP: clients append records and read them by long poll.
It also serves a chat page, a live dashboard and metrics, and prints their addresses.
Records are kept in memory. Ctrl-C stops the service and answers all pending polls."""
_EXAMPLES: Final = """\
examples:
  %(prog)s
      serves on port 8000 of this machine
  %(prog)s --host 0.0.0.0 --port 0
      serves on all addresses, on a free port
  curl -d '"hello"' -H 'Content-Type: application/json' localhost:8000/topics/lobby
      appends a record to the topic "lobby"
  curl -i 'localhost:8000/topics/lobby?offset=1&wait=30'
      waits up to 30 seconds for the record at offset 1; the Link header of the
      response is the URL of the next request
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until SIGINT or SIGTERM, and return the exit status."""
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
        parser.error(f"{error}; choose a lower --max-pending or a higher --max-connections")
    try:
        listener = _listen(options.host, options.port)
    except OSError as error:
        choice = "--port" if error.errno in (errno.EADDRINUSE, errno.EACCES) else "--host"
        print(f"{error}; choose another {choice}", file=sys.stderr)
        return CANNOT_LISTEN
    _raise_file_limit(limits.connections)
    config = uvicorn.Config(
        application(Service(limits)),
        http=Connection,
        ws="none",
        backlog=BACKLOG,
        timeout_graceful_shutdown=STOP_TIMEOUT,
        access_log=False,
        log_level="error",
        server_header=False,
    )
    for stop in STOP_SIGNALS:
        # uvicorn handles these signals while it runs, and raises them again when it has stopped.
        # By then they have had their effect, so they are ignored.
        signal.signal(stop, signal.SIG_IGN)
    Server(config).run([listener])
    return 0


class Server(uvicorn.Server):
    """Prints the addresses as soon as the service accepts requests."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        host, port = self.servers[0].sockets[0].getsockname()[:2]
        url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
        for name, path in PATHS.items():
            print(f"{name:<10} {url}{path}", flush=True)


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=BACKLOG)


def _raise_file_limit(connections: int) -> None:
    """Allow this process a file per connection. The limit is often 1,024 until a process raises it."""
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
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen on (default: %(default)s)")
    whole(parser.add_argument, "--port", 8000, "the port to listen on; 0 takes a free one", least=0)
    defaults = Limits()
    limits = parser.add_argument_group("limits")
    pending = "polls pending at a time, fewer than --max-connections; one more gets a 503"
    whole(limits.add_argument, "--max-pending", defaults.pending, pending)
    whole(limits.add_argument, "--max-topics", defaults.topics, "topics; a record for one more gets a 403")
    whole(
        limits.add_argument, "--max-connections", defaults.connections, "open connections; one more is closed"
    )
    times = parser.add_argument_group("times, in seconds")
    number(
        times.add_argument, "--max-wait", defaults.wait, "the longest wait that a poll may ask for", least=0
    )
    number(
        times.add_argument,
        "--session-timeout",
        defaults.session_timeout,
        "a session without a heartbeat for this long ends",
        above=0,
    )
    number(
        times.add_argument,
        "--client-timeout",
        defaults.client_timeout,
        "a client has this long to send a request or to read an answer",
        above=0,
    )
    return parser
