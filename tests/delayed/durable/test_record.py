"""What a message holds of an operation."""

from __future__ import annotations

from collections.abc import Hashable

from purgatory.delayed.durable.operation import Record
from tests.delayed.durable.shop import START


def test_a_record_comes_back_as_it_was() -> None:
    keys: tuple[Hashable, ...] = ("a", 1, 2.5, True, None, ("b", ("c", 3)), "\udcff")
    for replaces in (None, "7"):
        record = Record("payment", keys, START, b"\0payload", replaces)
        assert Record.parse(record.encoded()) == record
