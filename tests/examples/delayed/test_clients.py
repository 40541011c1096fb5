"""What the service does about what its client cannot do."""

from __future__ import annotations

from typing import Any

import pytest
from aiokafka import TopicPartition  # type: ignore[import-untyped]  # has no types

from examples.delayed.clients import next_records


class Consumer:
    """Fails as aiokafka does for a header whose name is not UTF-8."""

    def assignment(self) -> set[TopicPartition]:
        return {TopicPartition("delayed", 0), TopicPartition("delayed", 1)}

    async def getmany(self, timeout_ms: int, max_records: int) -> dict[TopicPartition, list[Any]]:
        b"\xff".decode()
        return {}


async def test_a_record_that_the_client_cannot_read_is_named_with_the_way_out() -> None:
    with pytest.raises(RuntimeError, match=r"a header in delayed is not UTF-8.*kafka-delete-records"):
        await next_records(Consumer(), 100, 10)
