"""Clients that mean harm are refused or dropped, memory is bounded, and the others are served meanwhile."""

from __future__ import annotations

import resource
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import httpx
import pytest

from tests.examples.longpoll.process import LiveService, live_service

pytestmark = pytest.mark.real_time

CONNECTIONS = 10_000
MIB = 1024 * 1024
CLIENT_TIMEOUT = 4.0

PATIENCE = 5.0
"""Seconds for another client's record and read; on a quiet machine they take 0.1 at worst."""


@pytest.fixture(scope="module")
def open_files() -> Iterator[int]:
    """How many sockets this process may have, up to what is wanted; the service allows itself as many."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = CONNECTIONS + 1_000
    limit = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, limit), hard))
    yield limit - 1_000
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture(scope="module")
def service() -> Iterator[LiveService]:
    with live_service(
        "--client-timeout", str(CLIENT_TIMEOUT), "--max-connections", str(CONNECTIONS + 500)
    ) as service:
        yield service


@contextmanager
def others_are_served(service: LiveService) -> Iterator[None]:
    """Records and reads all the while, and fails when that does not work, or takes long."""
    over = threading.Event()
    waits: list[float] = []
    failures: list[Exception] = []

    def follow() -> None:
        with httpx.Client(base_url=service.url, timeout=10) as client:
            offset = client.post("/topics/others", json="first").json()["offset"] + 1
            while not over.wait(0.02) or not waits:
                begun = time.monotonic()
                try:
                    assert client.post("/topics/others", json=offset).json()["offset"] == offset
                    page = client.get(f"/topics/others?offset={offset}").json()
                    assert page["records"] == [offset]
                except Exception as error:
                    failures.append(error)
                    return
                offset += 1
                waits.append(time.monotonic() - begun)

    thread = threading.Thread(target=follow)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
    assert not failures
    print(f"others: {len(waits)} times, at worst in {max(waits):.3f} s")
    assert max(waits) < PATIENCE


def connected(service: LiveService, stack: ExitStack) -> socket.socket:
    return stack.enter_context(socket.create_connection(("127.0.0.1", service.port), timeout=30))


def is_closed(connection: socket.socket) -> bool:
    """Waits for the end of the connection, however that comes."""
    try:
        while connection.recv(MIB):
            pass
    except ConnectionError:
        pass
    return True


def test_thousands_of_connections_that_never_send(service: LiveService, open_files: int) -> None:
    count = min(CONNECTIONS, open_files)
    before = service.memory
    with ExitStack() as stack:
        with others_are_served(service):
            connections = [connected(service, stack) for _ in range(count)]
            # On a busy machine the first have been dropped by now.
            open_now = service.pending("connections")
            held = service.memory - before
            assert all(map(is_closed, connections))
        print(f"{open_now} connections took {held / MIB:.0f} MiB")
    assert held < 150 * MIB
    assert service.pending("connections") < 10


def test_a_body_of_100_megabytes(service: LiveService) -> None:
    before = service.memory
    with ExitStack() as stack, others_are_served(service):
        for headers in ("Content-Length: 104857600\r\n", "Transfer-Encoding: chunked\r\n"):
            connection = connected(service, stack)
            head = f"POST /topics/t HTTP/1.1\r\nHost: test\r\nContent-Type: application/json\r\n{headers}\r\n"
            connection.sendall(head.encode())
            if "chunked" in headers:
                connection.sendall(b"6400000\r\n")
            for _ in range(100):
                connection.sendall(b"1" * MIB)
            answer = connection.recv(4096)
            assert answer.startswith(b"HTTP/1.1 413 ")
    assert service.memory - before < 50 * MIB


def test_readers_that_do_not_read(service: LiveService) -> None:
    for number in range(16):
        record = httpx.post(f"{service.url}/topics/big", json=f"{number} {'x' * 16_000}")
        assert record.status_code == 201
    before = service.memory
    with ExitStack() as stack, others_are_served(service):
        # Each asks for 4 MB, which is more than the kernel takes for it, and takes nothing of it.
        dropped = service.ended("connections", "expired")
        for _ in range(40):
            connection = connected(service, stack)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.sendall(b"GET /topics/big HTTP/1.1\r\nHost: test\r\n\r\n" * 16)
        service.until(lambda: service.ended("connections", "expired") >= dropped + 40)
        held = service.memory - before
        print(f"{held / MIB:.0f} MiB for 40 readers that did not read")
    assert held < 100 * MIB


def test_absurd_requests(service: LiveService) -> None:
    with httpx.Client(base_url=service.url) as client:
        for query in (
            "offset=-1",
            f"offset={'9' * 4000}",
            "offset=999999",
            "wait=1e308",
            "wait=nan",
            "min=1e9",
        ):
            assert 400 <= client.get(f"/topics/t?{query}").status_code < 500, query
        assert client.get(f"/topics/t?x={'y' * 20_000}").status_code == 200
        assert client.request("BREW", "/topics/t").status_code in (400, 405)
        assert client.get("/topics/%00").status_code == 422
