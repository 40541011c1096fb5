"""Hostile clients are refused or dropped, take little memory, and do not keep others from being served."""

from __future__ import annotations

import resource
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Final

import httpx
import pytest

from tests.examples.longpoll.conftest import StartService
from tests.examples.longpoll.process import ServiceProcess

pytestmark = pytest.mark.real_time

MIB: Final = 1024 * 1024
MAX_CONNECTIONS: Final = 10_500


@pytest.fixture(scope="module")
def service(start_service: StartService) -> Iterator[ServiceProcess]:
    with start_service("--client-timeout", "4", "--max-connections", str(MAX_CONNECTIONS)) as service:
        yield service


@pytest.fixture
def max_sockets() -> Iterator[int]:
    """Raises this process's limit of open files, and gives the sockets that it may then open."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_CONNECTIONS + 1_000
    limit = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, limit), hard))
    yield limit - 1_000
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture
def others(service: ServiceProcess) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=service.url, timeout=60) as client:
        yield client


def assert_served(others: httpx.Client) -> None:
    """Append a record and read it."""
    offset = others.post("/topics/others", json="record").json()["offset"]
    page = others.get(f"/topics/others?offset={offset}").json()
    assert page["records"] == ["record"]


def connect(service: ServiceProcess, stack: ExitStack) -> socket.socket:
    return stack.enter_context(socket.create_connection(("127.0.0.1", service.port), timeout=60))


def read_to_the_end(connection: socket.socket) -> None:
    try:
        while connection.recv(MIB):
            pass
    except ConnectionError:
        # A reset ends it as well.
        pass


@pytest.mark.parametrize("connections", [1_000, pytest.param(10_000, marks=pytest.mark.long)])
def test_connections_that_send_nothing_take_little_memory_and_are_closed(
    service: ServiceProcess, others: httpx.Client, max_sockets: int, connections: int
) -> None:
    count = min(connections, max_sockets)
    before = service.memory
    with ExitStack() as stack:
        silent = [connect(service, stack) for _ in range(count)]
        held = service.memory - before
        assert_served(others)
        for connection in silent:
            read_to_the_end(connection)
    print(f"{count} connections took {held / MIB:.0f} MiB")
    assert held < count * 15 * 1024 + 10 * MIB
    service.until(lambda: service.pending("connections") < 10)


@pytest.mark.parametrize("header", ["Content-Length: 104857600", "Transfer-Encoding: chunked"])
def test_a_body_of_100_mebibytes_is_refused_and_not_kept(
    service: ServiceProcess, others: httpx.Client, header: str
) -> None:
    before = service.memory
    with ExitStack() as stack:
        connection = connect(service, stack)
        head = "POST /topics/t HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
        connection.sendall(f"{head}{header}\r\n\r\n".encode())
        if "chunked" in header:
            connection.sendall(b"6400000\r\n")
        for sent in range(100):
            connection.sendall(b"1" * MIB)
            if sent == 50:
                assert_served(others)
        assert connection.recv(4096).startswith(b"HTTP/1.1 413 ")
    assert service.memory - before < 50 * MIB


def test_clients_that_do_not_read_their_answers_are_dropped(
    service: ServiceProcess, others: httpx.Client
) -> None:
    for number in range(16):
        answer = others.post("/topics/big", json=f"{number} {'x' * 16_000}")
        assert answer.status_code == 201
    before, expired = service.memory, service.finished("connections", "expired")
    with ExitStack() as stack:
        # Each asks for 4 MB, which is more than the kernel holds, and reads nothing of it.
        for _ in range(40):
            connection = connect(service, stack)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.sendall(b"GET /topics/big HTTP/1.1\r\nHost: localhost\r\n\r\n" * 16)
        assert_served(others)
        service.until(lambda: service.finished("connections", "expired") >= expired + 40)
        held = service.memory - before
    print(f"40 clients that did not read took {held / MIB:.0f} MiB")
    assert held < 100 * MIB
