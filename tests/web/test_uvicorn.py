"""Long polls under uvicorn, started by its command line as usual."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = [pytest.mark.real_time, pytest.mark.slow]

APPLICATION = """
from contextlib import asynccontextmanager
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from purgatory import DelayedOperation, Purgatory
from purgatory.web import close_on_signal, long_poll

class Nothing(DelayedOperation[str]):
    def try_complete(self):
        return False
    def on_complete(self):
        return "nothing"

@asynccontextmanager
async def lifespan(app):
    async with Purgatory() as app.state.purgatory, close_on_signal(app.state.purgatory):
        yield

async def poll(request):
    return PlainTextResponse(await long_poll(request, request.app.state.purgatory, Nothing(60), ["key"]))

async def statistics(request):
    statistics = request.app.state.purgatory.statistics()
    return PlainTextResponse(f"{statistics.pending} pending, {statistics.cancelled} cancelled")

app = Starlette(routes=[Route("/poll", poll), Route("/statistics", statistics)], lifespan=lifespan)
"""


def send_request(port: int, path: str) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), timeout=30)
    connection.sendall(f"GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n".encode())
    return connection


def read_response(connection: socket.socket) -> bytes:
    with connection:
        return b"".join(iter(lambda: connection.recv(65_536), b""))


def wait_for_statistics(port: int, expected: bytes) -> None:
    deadline = time.monotonic() + 20
    while not read_response(send_request(port, "/statistics")).endswith(expected):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_polls_are_withdrawn_when_clients_disconnect_and_answered_when_the_server_stops(
    tmp_path: Path,
) -> None:
    (tmp_path / "application.py").write_text(APPLICATION)
    path = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")]))
    command = [sys.executable, "-m", "uvicorn", "application:app", "--port", "0"]
    with subprocess.Popen(
        command,
        # uvicorn puts its own directory first on the import path.
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    ) as server:
        try:
            assert server.stderr is not None
            log = ""
            while (address := re.search(r"running on http://127\.0\.0\.1:(\d+)", log)) is None:
                line = server.stderr.readline()
                assert line, log
                log += line
            port = int(address[1])
            leaving, staying = send_request(port, "/poll"), send_request(port, "/poll")
            wait_for_statistics(port, b"2 pending, 0 cancelled")
            leaving.close()
            wait_for_statistics(port, b"1 pending, 1 cancelled")
            server.send_signal(signal.SIGTERM)
            response = read_response(staying)
            assert response.startswith(b"HTTP/1.1 200 OK")
            assert response.endswith(b"nothing")
            # uvicorn exits by the signal that stopped it, long before the minute of the poll's timeout.
            assert server.wait(20) == -signal.SIGTERM
            # There is no traceback in its log.
            assert "ERROR" not in server.stderr.read()
        finally:
            server.kill()
