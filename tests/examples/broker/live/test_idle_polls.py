"""A thousand consumers that wait: they cost memory, but no time until there is something to tell them."""

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

POLLS = 1000
LEADER = 1
# On the leader alone, so that those who fetch it are the consumers.
TOPIC = NewTopic("news", assignment=((LEADER,),))
PARTITION = TopicPartition(TOPIC.name, 0)
SECONDS = 2.0
# Of processor time, for both together. If each poll woke up but once, it would be several times as much.
SLACK = 0.1


@dataclass(frozen=True, slots=True)
class Spent:
    """Seconds of the processor on the brokers' thread, and how often their purgatories' timers rang."""

    processor: float
    wakeups: int


def spent_so_far(cluster: Cluster) -> Spent:
    wakeups = sum(
        counts.wakeups for purgatories in cluster.statistics().values() for counts in purgatories.values()
    )
    return Spent(time.thread_time(), wakeups)


def spent(cluster: LiveCluster) -> Spent:
    """In so many seconds of doing nothing."""
    before = cluster.look(spent_so_far)
    time.sleep(SECONDS)
    after = cluster.look(spent_so_far)
    return Spent(after.processor - before.processor, after.wakeups - before.wakeups)


def waiting(cluster: Cluster) -> int:
    return len(cluster.nodes[LEADER].replicas.fetch_purgatory.operations(PARTITION))


@pytest.fixture
def _both_ends() -> Iterator[None]:
    """Of every connection are files of this process."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = 2 * POLLS + 500
    if hard != resource.RLIM_INFINITY and hard < needed:
        pytest.skip(f"{needed} open files are needed, and {hard} allowed")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, needed), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("_both_ends")
def test_a_thousand_idle_polls_take_no_time_and_wake_together(
    cluster: LiveCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster.look(lambda running: running.controller.create_topic(TOPIC))
    cluster.until(lambda running: running.nodes[LEADER].replicas.partitions.get(PARTITION))
    address = cluster.look(lambda running: (running.nodes[LEADER].host, running.nodes[LEADER].port))
    without = spent(cluster)
    poll = with_size(request_frame(fetch_request(TOPIC.name, max_wait_ms=600_000)))
    with ExitStack() as stack:
        tracemalloc.start()
        clients = [stack.enter_context(RawClient.connected(address)) for _ in range(POLLS)]
        for client in clients:
            client.send(poll)
        cluster.until(lambda running: waiting(running) == POLLS)
        held, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        with_polls = spent(cluster)
        with capsys.disabled():
            print(
                f"\n{POLLS:,} idle polls: {held / POLLS / 1024:.1f} KiB for each, its connection included; "
                f"in {SECONDS:g} s {with_polls.processor * 1000:.0f} ms of processor time and "
                f"{with_polls.wakeups} wake-ups, without them {without.processor * 1000:.0f} ms "
                f"and {without.wakeups}",
                end=" ",
            )
        assert with_polls.processor < without.processor + SLACK
        # Timing wheels turn now and then, whoever waits.
        assert with_polls.wakeups < without.wakeups + POLLS / 20

        with RawClient.connected(address) as producer:
            assert produced(producer, wire_batch(b"news"), topic=TOPIC.name).base_offset == 0
        for client in clients:
            assert client.response(FETCH).responses[0].partitions[0].high_watermark == 1
    assert cluster.look(waiting) == 0
