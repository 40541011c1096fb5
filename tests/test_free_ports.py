"""Ports at which nobody listens."""

import socket
import sys
from contextlib import ExitStack

import pytest

from tests import free_ports as module
from tests.free_ports import free_ports, reserved_ports


def test_all_of_the_ports_can_be_bound() -> None:
    first = free_ports(3)
    with ExitStack() as servers:
        for port in range(first, first + 3):
            servers.enter_context(socket.socket()).bind(("127.0.0.1", port))


def test_a_block_with_a_port_in_use_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    first = free_ports(6)
    monkeypatch.setattr(module, "_FIRST", first)
    monkeypatch.setattr(module, "_LAST", first + 7)
    with socket.socket() as server, socket.socket() as other:
        server.bind(("127.0.0.1", first + 2))
        assert {free_ports(3) for _ in range(5)} == {first + 3}
        other.bind(("127.0.0.1", first + 4))
        with pytest.raises(OSError, match="3 consecutive ports"):
            free_ports(3)


@pytest.mark.skipif(sys.platform != "linux", reason="other systems decide otherwise who may have a port")
def test_a_reserved_port_is_for_a_server_that_may_share_it_and_for_nobody_else() -> None:
    with reserved_ports(1) as port:
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind(("127.0.0.1", port))
        for _ in range(2):
            with socket.create_server(("127.0.0.1", port)) as server:
                socket.create_connection(server.getsockname()).close()
