"""Long polls under uvicorn as it is usually run, by its command line."""

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

pytestmark = pytest.mark.real_time

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

async def figures(request):
    figures = request.app.state.purgatory.statistics()
    return PlainTextResponse(f"{figures.pending} pending, {figures.cancelled} cancelled")

app = Starlette(routes=[Route("/poll", poll), Route("/figures", figures)], lifespan=lifespan)
"""


def asking(port: int, path: str) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), timeout=30)
    connection.sendall(f"GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n".encode())
    return connection


def answer(connection: socket.socket) -> bytes:
    with connection:
        return b"".join(iter(lambda: connection.recv(65_536), b""))


def until_figures(port: int, expected: bytes) -> None:
    deadline = time.monotonic() + 20
    while not answer(asking(port, "/figures")).endswith(expected):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_polls_are_withdrawn_when_clients_leave_and_answered_when_the_server_stops(tmp_path: Path) -> None:
    (tmp_path / "application.py").write_text(APPLICATION)
    path = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")]))
    command = [sys.executable, "-m", "uvicorn", "application:app", "--port", "0"]
    with subprocess.Popen(
        command,
        env={**os.environ, "PYTHONPATH": path},
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    ) as server:
        try:
            assert server.stderr is not None
            said = ""
            while (address := re.search(r"running on http://127\.0\.0\.1:(\d+)", said)) is None:
                line = server.stderr.readline()
                assert line, said
                said += line
            port = int(address[1])
            leaving, staying = asking(port, "/poll"), asking(port, "/poll")
            until_figures(port, b"2 pending, 0 cancelled")
            leaving.close()
            until_figures(port, b"1 pending, 1 cancelled")
            begun = time.monotonic()
            server.send_signal(signal.SIGTERM)
            answered = answer(staying)
            assert answered.startswith(b"HTTP/1.1 200 OK")
            assert answered.endswith(b"nothing")
            # uvicorn ends by the signal that it was told to stop by.
            assert server.wait(10) == -signal.SIGTERM
            assert time.monotonic() - begun < 5
            # Nobody has left behind a traceback.
            assert "ERROR" not in server.stderr.read()
        finally:
            server.kill()
