"""Polls, streams and WebSockets behind nginx, with the configuration that the documentation shows."""

from __future__ import annotations

import asyncio
import shutil
import signal
import socket
import ssl
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import httpx
import pytest
from websockets.asyncio.client import connect

from tests.docs.programs import DOCS
from tests.web.serving import UVICORN, Server, serving

NGINX = shutil.which("nginx", path="/usr/sbin:/usr/bin:/usr/local/sbin")

pytestmark = [
    pytest.mark.asyncio(loop_factories=["asyncio"]),
    pytest.mark.real_time,
    pytest.mark.long,
    pytest.mark.skipif(NGINX is None, reason="needs nginx"),
]

MAIN = """
daemon off;
pid {directory}/pid;
error_log {directory}/errors;
worker_processes 1;
events {{ worker_connections 2048; }}
http {{
    access_log off;
    client_body_temp_path {directory}/body;
    proxy_temp_path {directory}/proxy;
    fastcgi_temp_path {directory}/fastcgi;
    uwsgi_temp_path {directory}/uwsgi;
    scgi_temp_path {directory}/scgi;
    include {directory}/service.conf;
}}
"""


@contextmanager
def behind_nginx(directory: Path) -> Iterator[tuple[Server, int]]:
    """A server, and the port of nginx in front of it."""
    key, certificate = directory / "key.pem", directory / "certificate.pem"
    subject = ["-nodes", "-days", "1", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-keyout", key, "-out", certificate, *subject],
        check=True,
        capture_output=True,
    )
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with serving(UVICORN, directory) as server:
        service = (DOCS / "nginx.conf").read_text()
        for shown, here in (
            ("127.0.0.1:8000", f"127.0.0.1:{server.port}"),
            ("listen 443 ", f"listen 127.0.0.1:{port} "),
            ("/etc/ssl/certs/example.com.pem", str(certificate)),
            ("/etc/ssl/private/example.com.key", str(key)),
        ):
            assert shown in service
            service = service.replace(shown, here)
        (directory / "service.conf").write_text(service)
        (directory / "nginx.conf").write_text(MAIN.format(directory=directory))
        command = [str(NGINX), "-p", str(directory), "-c", str(directory / "nginx.conf")]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as nginx:
            try:
                deadline = time.monotonic() + 30
                while not listening(port):
                    assert nginx.poll() is None, (directory / "errors").read_text()
                    assert time.monotonic() < deadline
                    time.sleep(0.05)
                yield server, port
            finally:
                nginx.terminate()


def listening(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=30).close()
    except ConnectionRefusedError:
        return False
    return True


@asynccontextmanager
async def one_connection(directory: Path, port: int) -> AsyncIterator[httpx.AsyncClient]:
    trusted = ssl.create_default_context(cafile=str(directory / "certificate.pem"))
    url, limits = f"https://localhost:{port}", httpx.Limits(max_connections=1)
    async with httpx.AsyncClient(
        http2=True, verify=trusted, base_url=url, timeout=60, limits=limits
    ) as client:
        yield client


async def test_one_connection_carries_many_polls_and_a_stream(tmp_path: Path) -> None:
    with behind_nginx(tmp_path) as (server, port):
        async with one_connection(tmp_path, port) as client, client.stream("GET", "/stream") as stream:
            lines = stream.aiter_lines()
            # nginx passes the head of the response on with the first bytes of its body.
            assert [await anext(lines), await anext(lines)] == [":", ""]
            polls = [asyncio.create_task(client.get("/poll")) for _ in range(90)]
            await asyncio.to_thread(server.until, b"91 pending, 0 cancelled")
            assert stream.http_version == "HTTP/2"
            assert (await client.post("/release")).text == "91"
            # The event comes at once, although the stream goes on.
            assert await anext(lines) == "id: 1"
            assert {(await poll).text for poll in polls} == {"nothing"}


async def test_the_next_requests_are_answered_after_head_on_a_stream(tmp_path: Path) -> None:
    with behind_nginx(tmp_path) as (server, port):
        async with one_connection(tmp_path, port) as client:
            for _ in range(5):
                # nginx keeps its connection to the service, and sends the next request over it.
                head = await client.head("/stream")
                assert (head.status_code, head.headers["Content-Type"]) == (
                    200,
                    "text/event-stream; charset=utf-8",
                )
                statistics = await client.get("/statistics", timeout=10)
                assert statistics.text == "0 pending, 0 cancelled"
            poll = asyncio.create_task(client.head("/poll"))
            await asyncio.to_thread(server.until, b"1 pending, 0 cancelled")
            await client.post("/release")
            assert ((await poll).status_code, (await poll).headers["Content-Length"]) == (200, "7")
            assert (await client.get("/statistics", timeout=10)).text == "0 pending, 0 cancelled"


async def test_clients_that_leave_nginx_withdraw_their_operations_and_a_stop_answers_the_others(
    tmp_path: Path,
) -> None:
    with behind_nginx(tmp_path) as (server, port):
        async with one_connection(tmp_path, port) as staying:
            async with one_connection(tmp_path, port) as leaving:
                polls = [asyncio.create_task(leaving.get("/poll")) for _ in range(10)]
                await asyncio.to_thread(server.until, b"10 pending, 0 cancelled")
                for poll in polls:
                    poll.cancel()
                await asyncio.wait(polls)
            last = asyncio.create_task(staying.get("/poll"))
            await asyncio.to_thread(server.until, b"1 pending, 10 cancelled")
            server.process.send_signal(signal.SIGTERM)
            assert (await last).text == "nothing"
            server.process.wait(20)
            assert (await staying.get("/poll")).status_code == 502


async def test_a_websocket_goes_through(tmp_path: Path) -> None:
    with behind_nginx(tmp_path) as (_, port):
        trusted = ssl.create_default_context(cafile=str(tmp_path / "certificate.pem"))
        async with connect(f"wss://localhost:{port}/echo", ssl=trusted) as websocket:
            await websocket.send("hello")
            assert await websocket.recv() == "hello"
