"""Many consumers with pending fetches cost memory, but no processor time until there are records."""

import resource
import time
import tracemalloc
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import pytest

from examples.broker.cluster import Cluster
from examples.broker.controller.new_topic import NewTopic
from examples.broker.protocol.apis import FETCH
from examples.broker.topic_partition import TopicPartition
from tests.examples.broker.live.bad_input.raw_client import RawClient
from tests.examples.broker.live.bad_input.valid_requests import fetch_request, produced
from tests.examples.broker.live.live_cluster import LiveCluster
from tests.examples.broker.protocol.wire_messages import request_frame, with_size
from tests.examples.broker.wire_batches import wire_batch

pytestmark = pytest.mark.real_time

LEADER = 1
# The topic has no followers, so that all fetches are those of consumers.
TOPIC = NewTopic("news", assignment=((LEADER,),))
PARTITION = TopicPartition(TOPIC.name, 0)
SECONDS = 2.0
# Seconds of processor time. If each of 1,000 polls woke up once, it would be several times as much.
SLACK = 0.1


@dataclass(frozen=True, slots=True)
class Spent:
    """Seconds of processor time on the brokers' thread, and the wake-ups of their purgatories' timers."""

    processor: float
    wakeups: int


def spent_so_far(cluster: Cluster) -> Spent:
    wakeups = sum(
        counts.wakeups for purgatories in cluster.statistics().values() for counts in purgatories.values()
    )
    return Spent(time.thread_time(), wakeups)


def spent(cluster: LiveCluster) -> Spent:
    """Return what the brokers spend in ``SECONDS`` without requests."""
    before = cluster.look(spent_so_far)
    time.sleep(SECONDS)
    after = cluster.look(spent_so_far)
    return Spent(after.processor - before.processor, after.wakeups - before.wakeups)


def waiting(cluster: Cluster) -> int:
    return len(cluster.nodes[LEADER].replicas.fetch_purgatory.operations(PARTITION))


@pytest.fixture(params=[100, pytest.param(1000, marks=pytest.mark.long)])
def polls(request: pytest.FixtureRequest) -> Iterator[int]:
    """The number of connections. Both ends of each one are open files of this process."""
    polls: int = request.param
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = 2 * polls + 500
    if hard != resource.RLIM_INFINITY and hard < needed:
        pytest.skip(f"{needed} open files are needed, and {hard} allowed")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, needed), hard))
    yield polls
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_idle_polls_take_no_processor_time_and_are_completed_together(
    cluster: LiveCluster, polls: int, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.look(lambda running: running.controller.create(TOPIC))
    cluster.until(lambda running: running.nodes[LEADER].replicas.partitions.get(PARTITION))
    address = cluster.look(lambda running: (running.nodes[LEADER].host, running.nodes[LEADER].port))
    without = spent(cluster)
    poll = with_size(request_frame(fetch_request(TOPIC.name, max_wait_ms=600_000)))
    with ExitStack() as stack:
        tracemalloc.start()
        clients = [stack.enter_context(RawClient.connected(address)) for _ in range(polls)]
        for client in clients:
            client.send(poll)
        cluster.until(lambda running: waiting(running) == polls)
        held, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        with_polls = spent(cluster)
        with capsys.disabled():
            print(
                f"\n{polls:,} idle polls: {held / polls / 1024:.1f} KiB for each, its connection included; "
                f"in {SECONDS:g} s {with_polls.processor * 1000:.0f} ms of processor time and "
                f"{with_polls.wakeups} wake-ups, without them {without.processor * 1000:.0f} ms "
                f"and {without.wakeups}",
                end=" ",
            )
        assert with_polls.processor < without.processor + SLACK
        # A timing wheel may wake up now and then without polls, too.
        assert with_polls.wakeups < without.wakeups + polls / 20

        with RawClient.connected(address) as producer:
            assert produced(producer, wire_batch(b"news"), topic=TOPIC.name).base_offset == 0
        for client in clients:
            assert client.response(FETCH).responses[0].partitions[0].high_watermark == 1
    assert cluster.look(waiting) == 0
