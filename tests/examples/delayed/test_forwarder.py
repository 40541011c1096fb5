"""What targets take, and what they refuse."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace

import anyio
import pytest

from examples.delayed.cancellations import Cancellations
from examples.delayed.clients import create_topics
from examples.delayed.forwarder import Forwarder, Statistics
from examples.delayed.producer import Producer
from examples.delayed.request import ProducerRecord, Request
from examples.delayed.settings import Settings
from tests.examples.broker.live.conftest import CONFIG
from tests.examples.broker.live.live_cluster import LiveCluster
from tests.examples.delayed.running import read

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def shared_cluster() -> Iterator[LiveCluster]:
    """Topics are not made by being used."""
    strict = replace(CONFIG, defaults=replace(CONFIG.defaults, auto_create_topics_enable=False))
    with LiveCluster.running(strict) as cluster:
        yield cluster


class OneCancelled(Cancellations):
    """The record 0-0 is cancelled."""

    def __init__(self) -> None:
        pass

    async def include(self, id: str) -> bool:
        return id == "0-0"


@asynccontextmanager
async def forwarding(settings: Settings) -> AsyncIterator[Forwarder]:
    await create_topics(settings.bootstrap, [settings.topics.rejected, target(settings)], 1, 1)
    async with Producer.running(settings.bootstrap) as producer:
        yield Forwarder(producer, OneCancelled(), settings.topics, Statistics(), appears=0.1)


def target(settings: Settings) -> str:
    return f"{settings.topics.requests}.out"


def request(target: str, value: bytes | None = b"value", key: bytes | None = b"key") -> Request:
    return Request("0-1", 5, target, key, value, (("x", b"y"),))


async def test_a_target_that_does_not_exist_refuses_a_record(settings: Settings) -> None:
    async with forwarding(settings) as forwarder:
        await forwarder.deliver(request("missing"))
    (record,) = await read(settings, settings.topics.rejected, 1)
    assert (record.headers["target"], record.headers["deliver-at"]) == (b"missing", b"5")
    assert b"UnknownTopicOrPartitionError" in record.headers["delayed-reason"]
    assert (forwarder.statistics.forwarded, forwarder.statistics.rejected) == (0, 1)


async def test_a_record_that_is_cancelled_is_not_forwarded(settings: Settings) -> None:
    async with forwarding(settings) as forwarder:
        await forwarder.deliver(replace(request(target(settings)), id="0-0"))
        await forwarder.deliver(replace(request("missing"), id="0-0"))
        await forwarder.deliver(request(target(settings)))
    (record,) = await read(settings, target(settings), 1)
    assert record.id == "0-1"
    counts = forwarder.statistics
    assert (counts.cancelled, counts.forwarded, counts.rejected) == (2, 1, 0)


async def test_a_record_that_is_too_large_for_its_target_is_set_aside_without_its_value(
    settings: Settings,
) -> None:
    async with forwarding(settings) as forwarder:
        await forwarder.deliver(request(target(settings), bytes(1_100_000)))
    (record,) = await read(settings, settings.topics.rejected, 1)
    assert record.value is None
    assert b"MessageSizeTooLargeError" in record.headers["delayed-reason"]


async def test_what_is_sent_together_with_a_record_that_is_refused_is_sent_once(settings: Settings) -> None:
    async with forwarding(settings) as forwarder, anyio.create_task_group() as tasks:
        for index in range(20):
            size = 1_100_000 if index % 10 == 5 else 10
            tasks.start_soon(forwarder.deliver, request(target(settings), b"%d" % index * size))
    assert (forwarder.statistics.forwarded, forwarder.statistics.rejected) == (18, 2)
    arrived = await read(settings, target(settings), 18)
    assert len({record.value for record in arrived}) == len(arrived) == 18


async def test_a_record_with_neither_a_key_nor_a_value_is_forwarded(settings: Settings) -> None:
    async with forwarding(settings) as forwarder:
        await forwarder.deliver(request(target(settings), None, None))
        await forwarder.deliver(request(target(settings), None, b"key"))
    first, second = await read(settings, target(settings), 2)
    assert (first.key, first.value, first.headers["x"]) == (None, None, b"y")
    assert (second.key, second.value) == (b"key", None)


async def test_what_is_sent_is_counted(settings: Settings) -> None:
    async with forwarding(settings) as forwarder:
        headers = [("x", b"yz"), ("n", b"")]
        await forwarder.send(ProducerRecord(target(settings), b"key", b"value", headers))
    assert (forwarder.statistics.sent, forwarder.statistics.sent_bytes) == (1, 3 + 5 + 1 + 2 + 1)
