"""Addresses as clients take them."""

import pytest

from examples.broker.address import address


@pytest.mark.parametrize(
    ("host", "text"),
    [("127.0.0.1", "127.0.0.1:9092"), ("broker.example", "broker.example:9092"), ("::1", "[::1]:9092")],
)
def test_an_ipv6_address_is_in_brackets(host: str, text: str) -> None:
    assert address(host, 9092) == text
