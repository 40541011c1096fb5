"""Producers and groups under load, while brokers and members fail again and again.

Three idempotent producers, one of each client, write each to partitions of its own. Two groups of five
members read all. Every seven seconds a member is killed. All the time, brokers are killed, paused and cut off
for up to three seconds. In the end each acknowledged record is stored once and in order on all replicas, and
each group has read each stored record.

The number of a round is its seed. ``BROKER_ENDURANCE_SECONDS`` in the environment sets the length of a round.
"""

import os
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import replace
from itertools import combinations
from random import Random
from threading import Event
from typing import Final

import pytest

from examples.broker.controller.new_topic import NewTopic
from examples.broker.metadata import TopicConfig
from tests.examples.broker.live.conftest import CONFIG
from tests.examples.broker.live.endurance.broker_faults import faults_of, harm
from tests.examples.broker.live.endurance.reading_group import ReadingGroup
from tests.examples.broker.live.groups.group_consumers import CONSUMERS, MemberSettings
from tests.examples.broker.live.idempotent_writers import (
    AiokafkaWriter,
    ConfluentWriter,
    KafkaPythonWriter,
    Writer,
)
from tests.examples.broker.live.live_cluster import LiveCluster, until
from tests.examples.broker.live.refusals import Refusals
from tests.examples.broker.live.stored_once import find_differences, find_faults, values

SECONDS: Final = float(os.environ.get("BROKER_ENDURANCE_SECONDS", "30"))
ROUNDS: Final = 3
# Seconds, for the groups to read what is left when the faults have ended.
PATIENCE: Final = 300.0

pytestmark = [pytest.mark.real_time, pytest.mark.long, pytest.mark.timeout(SECONDS + 3 * PATIENCE)]

TOPIC: Final = "events"
WRITERS: Final[Sequence[type[Writer]]] = (ConfluentWriter, AiokafkaWriter, KafkaPythonWriter)
PARTITIONS: Final = 2 * len(WRITERS)
MEMBERS: Final = 5
# Seconds: between two kills of members, between two records of a writer, and a member's session.
KILL_INTERVAL: Final = 7.0
PACE: Final = 0.02
SESSION_TIMEOUT: Final = 4.0
# Ten members share two cores with the brokers, so they do not ask as often as in other tests.
POLL_MS: Final = 250
SAFE: Final = replace(
    CONFIG, defaults=replace(CONFIG.defaults, topic_config=TopicConfig(min_insync_replicas=2))
)


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_no_acknowledged_record_is_lost_or_moved_and_each_group_reads_all(seed: int) -> None:
    with ExitStack() as stack:
        cluster = stack.enter_context(LiveCluster.running(SAFE))
        cluster.look(lambda running: running.controller.create(NewTopic(TOPIC, PARTITIONS, 3)))
        refusals = stack.enter_context(Refusals.observed())
        servers = cluster.bootstrap_servers
        writers = [stack.enter_context(kind.running(servers, TOPIC)) for kind in WRITERS]
        clients = [*combinations(CONSUMERS, 2)][seed % len(CONSUMERS)]
        groups = [
            stack.enter_context(ReadingGroup.running(settings(servers, name, client), MEMBERS))
            for name, client in zip(("first", "second"), clients, strict=True)
        ]
        injected = load_and_harm(cluster, writers, groups, seed)

        cluster.until_replicated(TOPIC, PARTITIONS)
        faults = [*refusals.unfounded]
        stored: dict[tuple[int, int], bytes] = {}
        for partition in range(PARTITIONS):
            logs = cluster.stored_logs(TOPIC, partition)
            leader = cluster.leader_of(TOPIC, partition)
            numbers = values(logs[leader])
            writer = writer_of(partition, writers)
            # librdkafka begins a new epoch after a gap, and when it gives up records that it has sent.
            found = find_faults(
                numbers,
                logs[leader],
                writer.acknowledged.get(partition, {}),
                begins_new_epochs=writer.begins_new_epochs and bool(refusals.gaps or writer.failed),
            )
            faults += (f"{partition}: {fault}" for fault in [*found, *find_differences(logs, leader)])
            stored |= {(partition, offset): b"%d" % number for offset, number in numbers.items()}
        until(
            lambda: all_is_read(groups, len(stored)),
            within=PATIENCE,
            explain=lambda: [(group, sorted(stored.keys() - group.read.keys())[:20]) for group in groups],
        )
        for group in groups:
            faults += [*group.faults, *unlike(stored, group)]
        report = [
            f"round {seed} of {SECONDS:g} s, brokers {dict(injected)}",
            *(f"{writer!r}, {len(writer.failed)} failed" for writer in writers),
            *map(repr, groups),
            f"{len(stored)} records are stored; {len(refusals.gaps)} batches were refused after a gap",
        ]
        report += [f"{len(faults)} faults", *faults[:40]]
        print("\n".join(report))
        assert not faults, "\n".join(report)
        given_up = [failure for writer in writers for failure in writer.failed]
        assert not given_up, "\n".join(["nothing is lost, but clients gave up records:", *given_up[:40]])


def settings(bootstrap_servers: str, name: str, client: str) -> MemberSettings:
    return MemberSettings(client, bootstrap_servers, name, TOPIC, name, SESSION_TIMEOUT, poll_ms=POLL_MS)


def load_and_harm(
    cluster: LiveCluster, writers: Sequence[Writer], groups: Sequence[ReadingGroup], seed: int
) -> Counter[str]:
    """Write for ``SECONDS``, with all faults. When it returns, each record is acknowledged or has failed."""
    random = Random(seed)
    ended = Event()
    with ThreadPoolExecutor(len(writers) + 1) as executor, ExitStack() as stack:
        stack.callback(ended.set)
        writing: list[Future[None]] = [
            executor.submit(
                write, writer, [p for p in range(PARTITIONS) if writer_of(p, writers) is writer], ended
            )
            for writer in writers
        ]
        harming = executor.submit(harm, cluster, faults_of(seed, range(1, 4)), ended)
        began = killed_at = time.monotonic()
        while time.monotonic() < began + SECONDS:
            assert not harming.done(), harming.result()
            if time.monotonic() > killed_at + KILL_INTERVAL:
                killed_at += KILL_INTERVAL
                random.choice(groups).kill(random.randrange(MEMBERS))
            ended.wait(0.05)
            listen(groups)
        ended.set()
        while not all(task.done() for task in writing):
            wait(writing, 0.05)
            listen(groups)
        for task in writing:
            task.result()
        return harming.result()


def write(writer: Writer, partitions: Sequence[int], ended: Event) -> None:
    while not ended.wait(PACE):
        writer.send(partitions[writer.sent % len(partitions)], writer.sent)
    writer.flush()


def writer_of(partition: int, writers: Sequence[Writer]) -> Writer:
    return writers[partition % len(writers)]


def listen(groups: Sequence[ReadingGroup]) -> None:
    """Do it often: a member waits while the pipe is full of what it has read."""
    for group in groups:
        group.listen()


def all_is_read(groups: Sequence[ReadingGroup], records: int) -> bool:
    listen(groups)
    return all(len(group.read) >= records for group in groups)


def unlike(stored: dict[tuple[int, int], bytes], group: ReadingGroup) -> Iterator[str]:
    """Return what a group has read otherwise than it is stored, or not at all."""
    for place in stored.keys() | group.read.keys():
        if stored.get(place) != group.read.get(place):
            yield f"{group!r} read {group.read.get(place)!r} at {place}, which is {stored.get(place)!r}"
