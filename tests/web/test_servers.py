"""Long polls and streams on real servers, each started by its command line as usual."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.web.serving import UVICORN, response, serving

pytestmark = pytest.mark.real_time

HYPERCORN = ("hypercorn", "application:create_app()", "--bind", "127.0.0.1:{port}")
GRANIAN = ("granian", "--interface", "asgi", "--factory", "application:create_app", "--port", "{port}")
GUNICORN = (
    "gunicorn",
    "application:create_app()",
    "--bind",
    "127.0.0.1:{port}",
    "-k",
    "uvicorn_worker.UvicornWorker",
)

SERVERS = [
    pytest.param((*UVICORN, "--loop", "asyncio"), id="uvicorn", marks=pytest.mark.slow),
    pytest.param((*UVICORN, "--loop", "uvloop"), id="uvicorn, uvloop", marks=pytest.mark.long),
    pytest.param((*HYPERCORN, "--workers", "0"), id="hypercorn without workers", marks=pytest.mark.long),
    pytest.param(
        (*HYPERCORN, "--workers", "0", "--worker-class", "uvloop"),
        id="hypercorn without workers, uvloop",
        marks=pytest.mark.long,
    ),
    pytest.param((*GRANIAN, "--loop", "asyncio"), id="granian", marks=pytest.mark.long),
    pytest.param((*GRANIAN, "--loop", "uvloop"), id="granian, uvloop", marks=pytest.mark.long),
    pytest.param(GUNICORN, id="gunicorn", marks=pytest.mark.long),
]


@pytest.mark.parametrize("command", SERVERS)
def test_clients_that_leave_withdraw_their_operations_and_a_stop_answers_those_that_stay(
    command: tuple[str, ...], tmp_path: Path
) -> None:
    with serving(command, tmp_path) as server:
        leaving = [server.request("/poll"), server.request("/stream")]
        staying = [server.request("/poll"), server.request("/stream")]
        server.until(b"4 pending, 0 cancelled")
        for connection in leaving:
            connection.close()
        server.until(b"2 pending, 2 cancelled")
        server.process.send_signal(signal.SIGTERM)
        poll, stream = (response(connection) for connection in staying)
        assert poll.startswith(b"HTTP/1.1 200 ")
        assert poll.endswith(b"nothing")
        assert b"id: 1\ndata: nothing\n\n" in stream
        # The last chunk, which says that the stream is complete.
        assert stream.endswith(b"\r\n0\r\n\r\n")
        # Long before the hour of the timeouts.
        assert server.process.wait(20) in (0, -signal.SIGTERM)
        assert "Traceback" not in server.log.read_text()


@pytest.mark.parametrize("command", SERVERS)
def test_head_and_clients_that_do_not_wait_for_headers_leave_nothing_behind(
    command: tuple[str, ...], tmp_path: Path
) -> None:
    with serving(command, tmp_path) as server:
        # The next request on the same connection is answered, so nothing of the first one goes on.
        for _ in range(3):
            first, following = server.on_one_connection("HEAD /stream", "GET /statistics")
            assert first.startswith(b"HTTP/1.1 200 ")
            assert b"content-type: text/event-stream" in first.lower()
            assert following.endswith(b"0 pending, 0 cancelled")
        refused = response(server.request("/stream", "OPTIONS"))
        assert refused.startswith(b"HTTP/1.1 405 ")
        allow = next(line for line in refused.lower().split(b"\r\n") if line.startswith(b"allow: "))
        assert set(allow.removeprefix(b"allow: ").split(b", ")) == {b"get", b"head"}
        # A HEAD waits for a long poll, as a GET does, and is withdrawn as a GET is.
        waiting = [server.request("/poll", "HEAD"), server.request("/poll", body=b"." * 300_000)]
        waiting.append(server.request("/stream", body=b"." * 300_000))
        server.until(b"3 pending, 0 cancelled")
        for connection in waiting:
            connection.close()
        server.until(b"0 pending, 3 cancelled")
        for path in ("/poll", "/stream"):
            for method in ("GET", "HEAD"):
                server.request(path, method).close()
        server.until(b"\n0 pending")
        answered = server.request("/poll", "HEAD")
        server.until(b"\n1 pending")
        response(server.request("/release", "POST"))
        assert response(answered).endswith(b"\r\n\r\n")
        assert "Traceback" not in server.log.read_text()


@pytest.mark.long
def test_the_worker_processes_of_hypercorn_warn_at_their_start_that_they_cut_polls_off(
    tmp_path: Path,
) -> None:
    with serving(HYPERCORN, tmp_path) as server:
        response(server.request("/statistics"))
        assert "close_on_signal has no effect" in server.log.read_text()
