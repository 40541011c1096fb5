"""Ports at which nobody listens."""

import socket
from contextlib import ExitStack

import pytest

from examples import free_ports as module
from examples.free_ports import free_ports


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
