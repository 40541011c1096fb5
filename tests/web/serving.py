"""Servers in processes of their own, with one application whose operations wait until they are released."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path

APPLICATION = """
from contextlib import asynccontextmanager
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route, WebSocketRoute
from purgatory import DelayedOperation, Purgatory
from purgatory.web import EventStream, ServerSentEvent, close_on_signal, long_poll

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
    return PlainTextResponse(await long_poll(request, request.app.state.purgatory, Nothing(3600), ["key"]))

async def stream(request):
    purgatory = request.app.state.purgatory
    events = lambda name: [ServerSentEvent("1", name)]
    return EventStream(purgatory, lambda last: Nothing(3600), ["key"], events)

async def release(request):
    return PlainTextResponse(str(sum(op.force_complete() for op in request.app.state.purgatory.operations())))

async def echo(websocket):
    await websocket.accept()
    await websocket.send_text(await websocket.receive_text())
    await websocket.close()

async def statistics(request):
    statistics = request.app.state.purgatory.statistics()
    return PlainTextResponse(f"{statistics.pending} pending, {statistics.cancelled} cancelled")

def create_app():
    return Starlette(
        lifespan=lifespan,
        routes=[
            Route("/poll", poll),
            Route("/stream", stream),
            Route("/statistics", statistics),
            Route("/release", release, methods=["POST"]),
            WebSocketRoute("/echo", echo),
        ],
    )
"""

UVICORN = ("uvicorn", "--factory", "application:create_app", "--port", "{port}")


@dataclass(frozen=True, slots=True)
class Server:
    process: subprocess.Popen[str]
    port: int
    log: Path

    def request(self, path: str, method: str = "GET", body: bytes = b"") -> socket.socket:
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=120)
        head = f"{method} {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n"
        length = f"Content-Length: {len(body)}\r\n" if body else ""
        connection.sendall(f"{head}{length}\r\n".encode() + body)
        return connection

    def on_one_connection(self, *requests: str) -> list[bytes]:
        """The answers to `requests`, such as "HEAD /stream", one after the other on one connection."""
        answers = []
        connection = HTTPConnection("127.0.0.1", self.port, timeout=20)
        for request in requests:
            method, path = request.split()
            connection.request(method, path)
            answer = connection.getresponse()
            lines = [f"HTTP/1.1 {answer.status} {answer.reason}"]
            lines += [f"{name}: {value}" for name, value in answer.getheaders()]
            answers.append("\r\n".join([*lines, "", ""]).encode() + answer.read())
        connection.close()
        return answers

    def until(self, statistics: bytes, seconds: float = 20.0) -> None:
        deadline = time.monotonic() + seconds
        while statistics not in (answer := response(self.request("/statistics"))):
            assert time.monotonic() < deadline, answer
            time.sleep(0.02)


def response(connection: socket.socket) -> bytes:
    with connection:
        return b"".join(iter(lambda: connection.recv(65_536), b""))


@contextmanager
def serving(command: tuple[str, ...], directory: Path, application: str = APPLICATION) -> Iterator[Server]:
    """Run a server until the end of the block, or until the test stops it."""
    (directory / "application.py").write_text(application)
    path = os.pathsep.join(filter(None, [str(directory), os.environ.get("PYTHONPATH")]))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    log = directory / "log"
    with (
        log.open("w") as output,
        subprocess.Popen(
            [sys.executable, "-m", *(part.format(port=port) for part in command)],
            # Some servers put their own directory first on the import path.
            cwd=directory,
            env={**os.environ, "PYTHONPATH": path},
            stdout=output,
            stderr=subprocess.STDOUT,
            text=True,
        ) as process,
    ):
        server = Server(process, port, log)
        try:
            until_listening(server)
            yield server
        finally:
            # Killed, it would leave its worker processes behind.
            process.terminate()
            try:
                process.wait(20)
            finally:
                process.kill()


def until_listening(server: Server) -> None:
    deadline = time.monotonic() + 30
    while True:
        try:
            socket.create_connection(("127.0.0.1", server.port), timeout=30).close()
        except ConnectionRefusedError:
            assert server.process.poll() is None, server.log.read_text()
            assert time.monotonic() < deadline, server.log.read_text()
            time.sleep(0.05)
        else:
            return
