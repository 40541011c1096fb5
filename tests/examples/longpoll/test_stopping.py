"""The service as users run it: what it says, and how it ends."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import time

import httpx
import pytest

from tests.examples.longpoll.process import ROOT, live_service

pytestmark = pytest.mark.real_time

POLLS = 1_000


async def poll(port: int, number: int) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(f"GET /topics/t-{number % 50}?wait=60 HTTP/1.1\r\nHost: test\r\n\r\n".encode())
        # Until the server closes, and it has to close properly: a reset would be raised.
        return await reader.read()
    finally:
        writer.close()
        await writer.wait_closed()


def test_all_polls_are_answered_before_it_ends() -> None:
    with live_service() as service:

        async def stop_under_load() -> tuple[list[bytes], float]:
            polls = [asyncio.create_task(poll(service.port, number)) for number in range(POLLS)]
            await asyncio.to_thread(service.until, lambda: service.pending("polls") == POLLS)
            begun = time.monotonic()
            service.process.send_signal(signal.SIGTERM)
            answers = await asyncio.gather(*polls)
            assert await asyncio.to_thread(service.process.wait, 10) == 0
            return answers, time.monotonic() - begun

        answers, seconds = asyncio.run(stop_under_load())
        assert service.process.stdout is not None
        said = service.process.stdout.read()
    assert len(answers) == POLLS
    for answer in answers:
        head, _, body = answer.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 OK\r\n")
        assert body.endswith(b'"records":[]}')
        assert f"content-length: {len(body)}".encode() in head
    print(f"{POLLS} polls answered and the process ended {seconds:.2f} s after SIGTERM")
    assert seconds < 2
    # Besides the addresses: no error, and nothing of a timeout.
    assert [line.split()[0] for line in said.splitlines()] == ["dashboard", "metrics", "API"]


def test_it_says_where_everything_is_and_ends_by_ctrl_c() -> None:
    with live_service("--host", "::1") as service:
        assert httpx.get(service.url).text.startswith("<!doctype html>")
        assert httpx.get(f"{service.url}/dashboard/").status_code == 200
        assert "purgatory_operations_total" in httpx.get(f"{service.url}/metrics").text
        assert httpx.get(f"{service.url}/openapi.json").json()["info"]["title"] == "Topics"
        service.process.send_signal(signal.SIGINT)
        assert service.process.wait(10) == 0


def test_a_taken_port_is_said_and_not_a_traceback() -> None:
    with live_service() as service:
        command = [sys.executable, "-m", "examples.longpoll", "--port", str(service.port)]
        second = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=30)
    assert second.returncode == 1
    assert second.stderr.endswith("choose another --port\n")
    assert "Traceback" not in second.stderr
