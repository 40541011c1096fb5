"""docs/broker.md follows a produce and a fetch from call to call. The brokers make the same calls."""

import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import FrameType

import anyio
import pytest
from anyio.lowlevel import checkpoint
from kio.static.primitive import i32

from examples.broker.cluster import Cluster
from examples.broker.controller.new_topic import NewTopic
from examples.broker.node.node import Node
from examples.broker.protocol.apis import FETCH, PRODUCE
from examples.broker.protocol.client import PeerConnection
from examples.broker.testing import running_cluster
from tests.examples.broker.handlers.record_requests import EVENTS, at, fetch, produce
from tests.examples.broker.leader_broker import events
from tests.examples.broker.wire_batches import wire_batch

pytestmark = pytest.mark.real_time

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "broker.md"
BROKER = str(ROOT / "examples" / "broker")
PATIENCE = 20.0


def calls_of(heading: str) -> list[str]:
    """The functions that the numbered list below a heading names, in order. Names of classes are no calls."""
    section = PAGE.read_text().partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    steps = "".join(re.findall(r"^\d+\. .*\n(?:   .*\n)*", section, re.MULTILINE))
    named = re.findall(r"`(?:handlers\.[a-z]+\.)?([A-Za-z_.]+)`", steps)
    return [name for name in named if not re.fullmatch(r"[A-Z][A-Za-z]*|append|on_complete|await", name)]


@contextmanager
def traced() -> Iterator[list[str]]:
    """The qualified names of the functions of the brokers, as they are called."""
    calls: list[str] = []

    def trace(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(BROKER):
            calls.append(frame.f_code.co_qualname)

    sys.setprofile(trace)
    try:
        yield calls
    finally:
        sys.setprofile(None)


def first_missing(wanted: list[str], calls: list[str]) -> str | None:
    """The first name that does not come after the names before it."""
    rest = iter(calls)
    return next((name for name in wanted if name not in rest), None)


async def leader_of(cluster: Cluster) -> Node:
    cluster.controller.create(NewTopic(EVENTS, 1, 3))
    state = cluster.controller.image.partition(events())
    assert state is not None
    return cluster.nodes[state.leader]


async def test_a_produce_and_a_fetch_make_the_calls_that_the_page_names() -> None:
    with anyio.fail_after(PATIENCE):
        async with running_cluster() as cluster, anyio.create_task_group() as tasks:
            leader = await leader_of(cluster)
            fetches = leader.replicas.fetch_purgatory
            producer, consumer = [
                await PeerConnection.open(leader.host, leader.port, "test") for _ in range(2)
            ]
            without_session = replace(fetch(at(0), max_wait=PATIENCE), session_epoch=i32(-1))
            with traced() as calls:
                tasks.start_soon(consumer.request, FETCH, without_session)
                # The consumer's fetch and those of both followers.
                while fetches.statistics().pending < 3:
                    await checkpoint()
                await producer.request(PRODUCE, produce((0, wire_batch(b"one")), acks=-1))
            await producer.aclose()
            await consumer.aclose()
    for heading in ("A produce with acks=all", "A long-poll fetch"):
        named = calls_of(heading)
        assert len(named) > 5
        assert first_missing(named, calls) is None
