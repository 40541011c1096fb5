"""The command that runs the service: ``python -m examples.longpoll``."""

from __future__ import annotations

import argparse
import asyncio
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
from examples.longpoll.postgres_store import PostgresStore
from examples.longpoll.redis_store import RedisStore
from examples.longpoll.service import Service
from examples.longpoll.store import Store, StoreUnavailable
from examples.longpoll.workers import accept_signals, run_workers
from purgatory.web.shutdown import STOP_SIGNALS

CANNOT_LISTEN: Final = 1
NO_STORE: Final = 1

LAST_PORT: Final = 65_535

BACKLOG: Final = 4096
"""Connections that the kernel queues until the loop accepts them; clients beyond that have to try again."""

STOP_TIMEOUT: Final = 5
"""Seconds that clients have to read their last answers when the service stops."""

PATHS: Final = {"chat": "/", "dashboard": "/dashboard/", "metrics": "/metrics", "API": "/openapi.json"}

OF_ONE_WORKER: Final = ("dashboard", "metrics")
"""These show the process that answers. The others are the same in all workers."""

_DESCRIPTION: Final = """\
Serve topics over HTTP: clients append records and read them by long poll.
It also serves a chat page, a live dashboard and metrics, and prints their addresses.
Records are kept in memory, or in Redis or PostgreSQL, which several workers can share.
Ctrl-C stops the service and answers all pending polls."""
_EXAMPLES: Final = """\
examples:
  %(prog)s
      serves on port 8000 of this machine
  %(prog)s --host 0.0.0.0 --port 0
      serves on all addresses, on a free port
  %(prog)s --workers 4 --redis redis://localhost:6379
      four processes on port 8000, which keep their records in Redis; each has its
      dashboard and its metrics on a port of its own, from 8001 to 8004
  %(prog)s --workers 4 --postgres postgresql://postgres@localhost/app
      the same with PostgreSQL, in tables whose names begin with "longpoll"
  curl -d '"hello"' -H 'Content-Type: application/json' localhost:8000/topics/lobby
      appends a record to the topic "lobby"
  curl -i 'localhost:8000/topics/lobby?offset=1&wait=20'
      waits up to 20 seconds for the record at offset 1; the Link header of the
      response is the URL of the next request
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until SIGINT or SIGTERM, and return the exit status."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if (highest := max(options.port, *_own_ports(options), 0)) > LAST_PORT:
        parser.error(f"argument --port: must be {LAST_PORT} or less, not {highest}")
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
    if options.workers > 1 and not (options.redis or options.postgres):
        parser.error("argument --workers: more than one needs --redis or --postgres, which they share")
    try:
        store = _store(options, limits)
    except ValueError as error:
        parser.error(f"argument --redis: {error}")
    try:
        if store is not None:
            asyncio.run(_connect(store))
        listener = _listen(options.host, options.port)
        own = [_listen(options.host, port) for port in _own_ports(options)]
    except StoreUnavailable as error:
        print(f"{error}; start the server, or choose another --redis or --postgres", file=sys.stderr)
        return NO_STORE
    except OSError as error:
        choice = "--port" if error.errno in (errno.EADDRINUSE, errno.EACCES) else "--host"
        print(f"{error}; choose another {choice}", file=sys.stderr)
        return CANNOT_LISTEN
    _raise_file_limit(limits.connections)
    for stop in STOP_SIGNALS:
        # uvicorn handles these signals while it runs, and raises them again when it has stopped. By then
        # they have had their effect, so this does nothing. A signal that is ignored would not wait for
        # uvicorn's handler.
        signal.signal(stop, lambda number, frame: None)
    print(f"Records and sessions are kept in {_kept_in(options)}.", flush=True)
    if options.workers == 1:
        _serve(options, limits, {listener: PATHS})
        return 0
    _print_addresses(listener, {name: path for name, path in PATHS.items() if name not in OF_ONE_WORKER})

    def serve(number: int) -> None:
        paths = {f"{name} {number}": PATHS[name] for name in OF_ONE_WORKER}
        _serve(options, limits, {own[number - 1]: paths, listener: {}})

    return run_workers(options.workers, serve)


def _serve(
    options: argparse.Namespace, limits: Limits, listeners: dict[socket.socket, dict[str, str]]
) -> None:
    """Serve in this process until SIGINT or SIGTERM, and print the paths of each listener."""
    config = uvicorn.Config(
        application(Service(limits, _store(options, limits)), options.allow_host),
        http=Connection,
        ws="none",
        backlog=BACKLOG,
        timeout_graceful_shutdown=STOP_TIMEOUT,
        access_log=False,
        log_level="error",
        server_header=False,
    )
    Server(config, listeners).run(list(listeners))


class Server(uvicorn.Server):
    """Prints the addresses as soon as the service accepts requests."""

    def __init__(self, config: uvicorn.Config, listeners: dict[socket.socket, dict[str, str]]) -> None:
        super().__init__(config)
        self._listeners = listeners

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        accept_signals()
        await super().startup(sockets)
        for listener, paths in self._listeners.items():
            _print_addresses(listener, paths)


def _print_addresses(listener: socket.socket, paths: dict[str, str]) -> None:
    host, port = listener.getsockname()[:2]
    url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    # In one piece: several workers print at the same time.
    lines = "".join(f"{name:<11} {url}{path}\n" for name, path in paths.items())
    print(lines, end="", flush=True)


def _store(options: argparse.Namespace, limits: Limits) -> Store | None:
    if options.redis is not None:
        return RedisStore(options.redis, limits)
    return None if options.postgres is None else PostgresStore(options.postgres, limits)


def _kept_in(options: argparse.Namespace) -> str:
    if options.redis is not None:
        return "Redis"
    return "the memory of this process" if options.postgres is None else "PostgreSQL"


async def _connect(store: Store) -> None:
    """Raise StoreUnavailable if the store cannot be used. Later each worker has connections of its own."""
    async with store:
        pass


def _own_ports(options: argparse.Namespace) -> list[int]:
    """With several workers, the port where one alone answers, for each. 0 is any free one."""
    numbers = range(1, options.workers + 1) if options.workers > 1 else ()
    return [options.port and options.port + number for number in numbers]


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
    parser.add_argument(
        "--allow-host",
        metavar="NAME",
        action="append",
        default=[],
        help="a name under which the service is reached, such as a proxy's, beside those of this machine; "
        "may be given several times",
    )
    whole(parser.add_argument, "--port", 8000, "the port to listen on; 0 takes a free one", least=0)
    whole(parser.add_argument, "--workers", 1, "processes; each one takes a port behind --port, too", least=1)
    stores = parser.add_argument_group("the store of several workers, or of several machines")
    store = stores.add_mutually_exclusive_group()
    store.add_argument("--redis", metavar="URL", help="keep records and sessions in Redis or Valkey")
    store.add_argument("--postgres", metavar="DSN", help="keep records and sessions in PostgreSQL")
    defaults = Limits()
    limits = parser.add_argument_group("limits; those of polls and of connections are for each worker")
    pending = "polls pending at a time, fewer than --max-connections; one more gets a 503"
    whole(limits.add_argument, "--max-pending", defaults.pending, pending)
    whole(limits.add_argument, "--max-topics", defaults.topics, "topics; a record for one more gets a 403")
    whole(
        limits.add_argument, "--max-connections", defaults.connections, "open connections; one more is closed"
    )
    times = parser.add_argument_group("times, in seconds")
    number(
        times.add_argument,
        "--max-wait",
        defaults.wait,
        "the longest wait that a poll may ask for; less than the timeouts of proxies",
        least=0,
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
