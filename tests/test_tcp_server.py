"""The server for tests: what its end leaves behind."""

from __future__ import annotations

import socket

import anyio
import anyio.lowlevel
import pytest
from anyio.abc import SocketStream

from tests.tcp_server import tcp_server


async def test_a_connection_that_comes_as_the_server_ends_is_no_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def never(_: SocketStream) -> None:
        pytest.fail("the server has ended")

    with socket.socket() as client:
        async with tcp_server(never) as port:
            await anyio.wait_all_tasks_blocked()
            client.connect(("127.0.0.1", port))
            # The loop has seen the connection, and this task runs before the loop accepts it.
            await anyio.lowlevel.checkpoint()
    assert not caplog.text
