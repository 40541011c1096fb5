"""What the service does about what its client cannot do."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from aiokafka import TopicPartition  # type: ignore[import-untyped]  # has no types

from examples.delayed import clients
from examples.delayed.clients import create_topics, next_records, reading
from examples.delayed.settings import Settings
from tests.examples.delayed.running import PATIENCE


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


async def test_a_consumer_that_asked_a_former_leader_where_a_partition_begins_finds_the_new_one(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients, "_LEADERS", 50)
    topic = settings.topics.requests
    partition = TopicPartition(topic, 0)
    await create_topics(settings.bootstrap, [topic], 1, 3)
    async with reading(settings.bootstrap) as consumer:
        consumer.assign([partition])
        await consumer.position(partition)
        known = consumer._client.cluster._partitions[topic]
        known[0] = known[0]._replace(leader=known[0].leader % 3 + 1)
        with anyio.fail_after(PATIENCE):
            await consumer.seek_to_beginning(partition)
