"""Names of partitions and addresses of brokers."""

import pytest

from examples.broker.metadata import address
from examples.broker.topic_partition import TopicPartition, by_topic


@pytest.mark.parametrize(
    ("host", "text"),
    [("127.0.0.1", "127.0.0.1:9092"), ("broker.example", "broker.example:9092"), ("::1", "[::1]:9092")],
)
def test_an_ipv6_address_is_in_brackets(host: str, text: str) -> None:
    assert address(host, 9092) == text


def test_entries_are_grouped_by_topic_in_their_order() -> None:
    b1, a0, b0 = TopicPartition("b", 1), TopicPartition("a", 0), TopicPartition("b", 0)
    entries = [(b1, "first"), (a0, "second"), (b0, "third")]
    assert by_topic(entries) == {"b": [(1, "first"), (0, "third")], "a": [(0, "second")]}
