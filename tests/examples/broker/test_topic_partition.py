"""Partitions of several topics."""

from examples.broker.topic_partition import TopicPartition, by_topic


def test_entries_are_grouped_by_topic_in_their_order() -> None:
    entries = {
        TopicPartition("b", 1): "first",
        TopicPartition("a", 0): "second",
        TopicPartition("b", 0): "third",
    }
    assert by_topic(entries.items()) == {"b": [(1, "first"), (0, "third")], "a": [(0, "second")]}
