"""The service as its users run it: one process, or several that share PostgreSQL."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from examples.longpoll.__main__ import main
from tests.examples.longpoll.process import ROOT, ServiceProcess, service_process
from tests.relay.live.servers import PostgresServer

pytestmark = pytest.mark.real_time

WORKERS = 4


def shared(server: PostgresServer) -> list[str]:
    return ["--workers", str(WORKERS), "--postgres", server.url]


async def poll(url: httpx.URL) -> bytes:
    reader, writer = await asyncio.open_connection(url.host, url.port)
    try:
        writer.write(f"GET /topics/empty?wait=25 HTTP/1.1\r\nHost: {url.host}\r\n\r\n".encode())
        # Reads until the server closes the connection. A reset would raise ConnectionResetError.
        return await reader.read()
    finally:
        writer.close()
        await writer.wait_closed()


async def polls_of_a_service_that_stops(service: ServiceProcess, workers: int) -> list[bytes]:
    tasks = [asyncio.create_task(poll(httpx.URL(service.url))) for _ in range(100)]
    await asyncio.to_thread(service.until_pending, 100, workers)
    service.process.send_signal(signal.SIGTERM)
    return await asyncio.gather(*tasks)


def test_a_port_that_is_in_use_is_refused_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(SystemExit) as ended:
            main(["--port", str(port)])
    assert ended.value.code == 2
    assert capsys.readouterr().err.endswith(f"error: port {port} is in use; choose another --port\n")


def are_complete(answers: list[bytes]) -> bool:
    heads = [answer.partition(b"\r\n\r\n")[0] for answer in answers]
    return all(head.startswith(b"HTTP/1.1 200 OK\r\n") for head in heads) and all(
        answer.endswith(b'"records": []}') for answer in answers
    )


@pytest.mark.parametrize(
    "workers", [pytest.param(1, marks=pytest.mark.slow), pytest.param(WORKERS, marks=pytest.mark.long)]
)
def test_a_signal_answers_all_pending_polls_completely_and_leaves_no_process_behind(
    workers: int, request: pytest.FixtureRequest
) -> None:
    several = shared(request.getfixturevalue("server")) if workers > 1 else []
    with service_process(*several) as service:
        processes = service.until_pending(0, workers)
        answers = asyncio.run(polls_of_a_service_that_stops(service, workers))
        service.process.wait(60)
        assert service.process.stdout is not None
        printed = service.process.stdout.read()
    assert are_complete(answers)
    # No error, and no message that the stop took too long.
    assert "ERROR" not in printed, printed
    for process in processes:
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)


@pytest.mark.slow
def test_the_page_the_dashboard_and_the_api_are_served(running_service: ServiceProcess) -> None:
    for path, start in (("", "<!doctype html>"), ("dashboard/", "<!doctype html>"), ("openapi.json", "{")):
        assert httpx.get(f"{running_service.url}/{path}").text.startswith(start)


def test_several_workers_without_a_store_are_refused_in_one_sentence(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["--workers", "2"])
    assert capsys.readouterr().err.endswith("more than one needs --postgres, which they share\n")


@pytest.mark.skipif(shutil.which("make") is None, reason="there is no make here")
def test_make_serve_installs_what_the_service_needs_and_says_so(tmp_path: Path) -> None:
    places = [f"VENV={tmp_path / 'venv'}", f"COMPILED_TREE={tmp_path / 'compiled'}"]
    command = ["make", "--dry-run", "serve", *places]
    printed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    steps = [line for line in printed.splitlines() if line.startswith("echo ")]
    # Two steps at a time, so that they come in any order.
    done = sorted(step.split()[1].strip('"') for step in steps)
    assert done == ["Building", "Installing", "Installing", "Making"]
    installs = [
        line for line in printed.splitlines() if "pip install" in line and "constraints.txt -r" in line
    ]
    assert {line.partition("pyproject.toml ")[2] for line in installs} == {
        "--group build",
        "--extra postgres --extra uvloop --extra web --group longpoll",
    }


async def chat(service: ServiceProcess, processes: list[int]) -> tuple[list[str], list[list[str]]]:
    """What was said, and what each of several clients has read, while the processes are killed in turn."""
    limits = httpx.Limits(max_keepalive_connections=0)
    async with httpx.AsyncClient(base_url=service.url, timeout=60, limits=limits) as client:

        async def asked(method: str, url: httpx.URL | str, message: object = None) -> httpx.Response:
            while True:
                try:
                    answer = await client.request(method, url, json=message)
                    if answer.status_code != 503:
                        return answer
                except httpx.TransportError:
                    # The worker has died. Its clients do not come back at the same time.
                    await asyncio.sleep(random.random())

        async def follow() -> list[str]:
            url, seen = httpx.URL(f"{service.url}/topics/chat?wait=5"), []
            while "end" not in seen:
                answer = await asked("GET", url)
                seen += [record["text"] for record in answer.json()["records"]]
                url = url.join(answer.links["next"]["url"])
            return seen

        readers = [asyncio.create_task(follow()) for _ in range(5)]
        said = [*map(str, range(60)), "end"]
        for number, text in enumerate(said):
            if number % 15 == 10:
                os.kill(processes.pop(), signal.SIGKILL)
            await asked("POST", "/topics/chat", {"name": "ada", "text": text})
        return said, await asyncio.gather(*readers)


@pytest.mark.long
@pytest.mark.timeout(600)
def test_no_client_loses_a_message_while_workers_are_killed(server: PostgresServer) -> None:
    with service_process(*shared(server)) as service:
        processes = service.until_pending(0, WORKERS)
        said, read = asyncio.run(chat(service, processes))
    assert processes == []
    for seen in read:
        # A writer whose worker has died asks again, so a message may be there twice, one after the other.
        assert list(dict.fromkeys(seen)) == said


@pytest.mark.long
def test_a_store_that_cannot_be_reached_ends_the_start(server: PostgresServer) -> None:
    nowhere = server.url.replace(str(server.port), "1")
    command = [sys.executable, "-m", "examples.longpoll", "--port", "0", "--workers", "2"]
    refused = subprocess.run([*command, "--postgres", nowhere], cwd=ROOT, capture_output=True, text=True)
    assert "StoreUnavailable: PostgreSQL: " in refused.stderr
