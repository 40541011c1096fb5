"""A server, as it is run in a process of its own: ``python -m benchmarks.longpoll.server WAY LOOP``."""

from __future__ import annotations

import sys

import uvicorn

from benchmarks import loops
from benchmarks.longpoll.application import Application
from benchmarks.longpoll.ways import WAYS

# What the kernel may hold of those who connect at the same time.
BACKLOG = 4096


def main(way: str, loop: str) -> None:
    """Say where it listens, and serve until killed."""
    loops.run(loop, _serve(way))


async def _serve(name: str) -> None:
    async with WAYS[name][1]() as way:
        config = uvicorn.Config(
            Application(way),
            port=0,
            http="httptools",
            ws="none",
            lifespan="off",
            access_log=False,
            log_level="warning",
            backlog=BACKLOG,
            # Longer than any measurement: connections are used again.
            timeout_keep_alive=3600,
        )
        listening = config.bind_socket()
        # Now, because whoever reads where it listens connects at once.
        listening.listen(BACKLOG)
        host, port = listening.getsockname()
        print(f"http://{host}:{port}", flush=True)
        await uvicorn.Server(config).serve([listening])


if __name__ == "__main__":
    main(*sys.argv[1:])
