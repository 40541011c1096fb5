"""The service as its users run it: the addresses it prints, and how it stops."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys

import httpx
import pytest

from tests.examples.longpoll.conftest import StartService
from tests.examples.longpoll.process import ROOT, ServiceProcess

pytestmark = pytest.mark.real_time


async def poll(port: int, number: int) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(f"GET /topics/t-{number % 50}?wait=25 HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        # Reads until the server closes the connection. A reset would raise ConnectionResetError.
        return await reader.read()
    finally:
        writer.close()
        await writer.wait_closed()


@pytest.mark.parametrize("polls", [100, pytest.param(1_000, marks=pytest.mark.long)])
def test_a_signal_answers_all_pending_polls_completely_and_ends_the_process(
    start_service: StartService, polls: int
) -> None:
    with start_service() as service:

        async def stop_under_load() -> list[bytes]:
            tasks = [asyncio.create_task(poll(service.port, number)) for number in range(polls)]
            await asyncio.to_thread(service.until, lambda: service.pending("polls") == polls)
            service.process.send_signal(signal.SIGTERM)
            return await asyncio.gather(*tasks)

        answers = asyncio.run(stop_under_load())
        assert service.process.wait(60) == 0
        assert service.process.stdout is not None
        printed = service.process.stdout.read()
    assert len(answers) == polls
    for answer in answers:
        head, _, body = answer.partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 OK\r\n")
        assert body.endswith(b'"records":[]}')
        assert f"content-length: {len(body)}".encode() in head
    # Nothing but the addresses: no error, and no message that the stop took too long.
    assert [line.split()[0] for line in printed.splitlines()] == ["dashboard", "metrics", "API"]


def test_every_address_is_served_and_ctrl_c_ends_the_process(start_service: StartService) -> None:
    with start_service("--host", "::1", "--allow-host", "chat.example.org") as service:
        assert httpx.get(service.url).text.startswith("<!doctype html>")
        assert httpx.get(f"{service.url}/dashboard/").status_code == 200
        assert httpx.get(service.url, headers={"Host": "chat.example.org"}).status_code == 200
        assert httpx.get(service.url, headers={"Host": "evil.example"}).status_code == 421
        assert "purgatory_operations_total" in httpx.get(f"{service.url}/metrics").text
        assert httpx.get(f"{service.url}/openapi.json").json()["info"]["title"] == "Topics"
        service.process.send_signal(signal.SIGINT)
        assert service.process.wait(60) == 0


def test_a_port_in_use_is_refused_in_one_sentence(running_service: ServiceProcess) -> None:
    command = [sys.executable, "-m", "examples.longpoll", "--port", str(running_service.port)]
    second = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert second.returncode == 1
    assert second.stderr.endswith("choose another --port\n")
    assert "Traceback" not in second.stderr
