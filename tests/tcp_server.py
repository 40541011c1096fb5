"""A server on a free port, for tests that put themselves between a client and its server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import anyio
from anyio.abc import SocketAttribute, SocketStream


@asynccontextmanager
async def tcp_server(handle: Callable[[SocketStream], Awaitable[None]]) -> AsyncIterator[int]:
    """Serve each connection with `handle`, until the end of the block. Yields the port."""
    async with (
        await anyio.create_tcp_listener(local_host="127.0.0.1") as listener,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(listener.serve, handle)
        try:
            yield listener.extra(SocketAttribute.local_port)
        finally:
            # A connection may come in the moment of the cancel. asyncio's sock_accept then sets the result
            # of a cancelled future, and the connection's socket is lost. So the loop looks no more first.
            asyncio.get_running_loop().remove_reader(listener.extra(SocketAttribute.raw_socket))
            tasks.cancel_scope.cancel()
