"""The command that runs the service: ``python -m examples.longpoll``."""

from __future__ import annotations

import argparse
import errno
import os
import socket
from collections.abc import Sequence
from typing import Final

import uvicorn

from examples.arguments import whole
from examples.longpoll.application import POSTGRES

STOP_TIMEOUT: Final = 5
"""Seconds that clients have to read their last answers when the service stops."""

WORKER_TIMEOUT: Final = 30
"""Seconds that a worker has to begin, and to say that it is alive. Otherwise another one takes its place."""

BACKLOG: Final = 4096
"""Connections that the kernel queues until the loop accepts them."""

_DESCRIPTION: Final = """\
Serve a chat over HTTP: clients append records to topics and read them by long poll.
The chat page is at /, the dashboard at /dashboard/, and the API at /openapi.json.
Ctrl-C stops the service and answers all pending polls."""
_EXAMPLES: Final = """\
examples:
  %(prog)s
      serves on port 8000 of this machine, and keeps the records in memory
  %(prog)s --workers 4 --postgres postgresql://postgres@localhost/app
      four processes share port 8000, and keep the records in PostgreSQL, in tables
      whose names begin with "longpoll"
  curl -d '{"name": "ada", "text": "hello"}' -H 'Content-Type: application/json' localhost:8000/topics/lobby
      appends a record to the topic "lobby"
  curl -i 'localhost:8000/topics/lobby?wait=20'
      waits up to 20 seconds for records; the Link header of the answer is the URL
      of the next request
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Serve until SIGINT or SIGTERM."""
    parser = argparse.ArgumentParser(
        prog="python -m examples.longpoll",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen on (default: %(default)s)")
    whole(parser.add_argument, "--port", 8000, "the port to listen on; 0 takes a free one", least=0)
    whole(parser.add_argument, "--workers", 1, "processes that serve")
    parser.add_argument("--postgres", metavar="DSN", help="keep records and sessions in PostgreSQL")
    options = parser.parse_args(arguments)
    if options.workers > 1 and options.postgres is None:
        parser.error("argument --workers: more than one needs --postgres, which they share")
    if options.port:
        # uvicorn says this in three lines, each worker for itself.
        try:
            socket.create_server((options.host, options.port)).close()
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                parser.error(f"argument --host: {options.host}: {error.strerror or error}")
            parser.error(f"port {options.port} is in use; choose another --port")
    # Each worker makes its application from the environment that it inherits.
    os.environ[POSTGRES] = options.postgres or ""
    uvicorn.run(
        "examples.longpoll.application:create_app",
        factory=True,
        host=options.host,
        port=options.port,
        workers=options.workers,
        backlog=BACKLOG,
        timeout_worker_healthcheck=WORKER_TIMEOUT,
        timeout_graceful_shutdown=STOP_TIMEOUT,
        access_log=False,
    )


if __name__ == "__main__":
    main()
