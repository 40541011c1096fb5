"""Producers and groups under load, while brokers and members fail again and again.

Three idempotent producers, one of each client, write each to partitions of its own. All the time, brokers are
killed, paused and cut off. In a long round two groups of five members read all, every seven seconds a member
is killed, and a fault of a broker takes up to three seconds. In the end each acknowledged record is stored
once and in order on all replicas, and each group has read each stored record.

The number of a round is its seed. ``BROKER_ENDURANCE_SECONDS`` in the environment sets the length of a long
round.
"""

import os
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import combinations
from random import Random
from threading import Event
from typing import Final

import pytest

from examples.broker.controller.new_topic import NewTopic
from examples.broker.metadata import TopicConfig
from tests.examples.broker.live.clients.client_interface import ConsumerSettings
from tests.examples.broker.live.clients.python_clients import CLIENTS, Client
from tests.examples.broker.live.conftest import CONFIG
from tests.examples.broker.live.endurance.broker_faults import faults_of, harm
from tests.examples.broker.live.endurance.reading_group import ReadingGroup
from tests.examples.broker.live.groups.member_process import Job
from tests.examples.broker.live.idempotent_writers import Writer
from tests.examples.broker.live.live_cluster import LiveCluster, until
from tests.examples.broker.live.stored_once import check_partition

SECONDS: Final = float(os.environ.get("BROKER_ENDURANCE_SECONDS", "30"))
# Seconds, for the groups to read what is left when the faults have ended.
PATIENCE: Final = 300.0

pytestmark = [pytest.mark.real_time, pytest.mark.timeout(SECONDS + 3 * PATIENCE)]

TOPIC: Final = "events"
PARTITIONS: Final = 2 * len(CLIENTS)
# Seconds: between two kills of members, between two commits of a member, between two records of a writer, and
# a member's session.
KILL_INTERVAL: Final = 7.0
COMMIT_INTERVAL: Final = 1.0
PACE: Final = 0.02
SESSION_TIMEOUT: Final = 4.0
# Ten members share two cores with the brokers, so they do not ask as often as in other tests.
POLL: Final = 0.25
# A fault outlasts the session of a broker, or the time that it may lag, or neither.
SAFE: Final = replace(
    CONFIG,
    defaults=replace(
        CONFIG.defaults, topic_config=TopicConfig(min_insync_replicas=2), broker_session_timeout=1.0
    ),
    broker=replace(CONFIG.broker, replica_lag_time_max=1.0),
)


@dataclass(frozen=True, slots=True)
class Round:
    """``seconds`` is its length. There are two groups of so many ``members``, or none."""

    seed: int
    seconds: float
    longest_rest: float
    longest_fault: float
    members: int


@pytest.mark.parametrize(
    "round_",
    [
        *(Round(seed, 5.0, 0.5, 1.0, 0) for seed in range(3)),
        *(pytest.param(Round(seed, SECONDS, 5.0, 3.0, 5), marks=pytest.mark.long) for seed in range(3)),
    ],
    ids=str,
)
def test_no_acknowledged_record_is_lost_or_moved_and_each_group_reads_all(round_: Round) -> None:
    with ExitStack() as stack:
        cluster = stack.enter_context(LiveCluster.running(SAFE))
        cluster.create_topics(NewTopic(TOPIC, PARTITIONS, 3))
        servers = cluster.bootstrap_servers
        writers = [stack.enter_context(Writer.running(client, servers, TOPIC)) for client in CLIENTS]
        readers = [*combinations(CLIENTS, 2)][round_.seed % len(CLIENTS)] if round_.members else ()
        groups = [
            stack.enter_context(ReadingGroup.running(job(servers, client), round_.members))
            for client in readers
        ]
        injected = load_and_harm(cluster, writers, groups, round_)

        cluster.until_replicated(TOPIC, PARTITIONS)
        faults: list[str] = []
        stored: dict[tuple[int, int], bytes] = {}
        for partition in range(PARTITIONS):
            numbers, found = check_partition(cluster, partition, writer_of(partition, writers))
            faults += found
            stored |= {(partition, offset): b"%d" % number for offset, number in numbers.items()}
        until(
            lambda: all_is_read(groups, len(stored)),
            within=PATIENCE,
            explain=lambda: [(group, sorted(stored.keys() - group.read.keys())[:20]) for group in groups],
        )
        for group in groups:
            faults += [*group.faults, *unlike(stored, group)]
        report = [
            f"{round_}, brokers {dict(injected)}",
            *(f"{writer!r}, {len(writer.failed)} failed" for writer in writers),
            *map(repr, groups),
            f"{len(stored)} records are stored; {len(faults)} faults",
            *faults[:40],
        ]
        print("\n".join(report))
        assert not faults, "\n".join(report)
        given_up = [failure for writer in writers for failure in writer.failed]
        assert not given_up, "\n".join(["nothing is lost, but clients gave up records:", *given_up[:40]])


def job(bootstrap_servers: str, client: Client) -> Job:
    settings = ConsumerSettings(fetch_max_wait=POLL, group_id=client.name, session_timeout=SESSION_TIMEOUT)
    return Job(client, bootstrap_servers, TOPIC, settings, COMMIT_INTERVAL)


def load_and_harm(
    cluster: LiveCluster, writers: Sequence[Writer], groups: Sequence[ReadingGroup], round_: Round
) -> Counter[str]:
    """Write, with all faults. When it returns, each record is acknowledged or has failed."""
    random = Random(round_.seed)
    faults = faults_of(round_.seed, round_.longest_rest, round_.longest_fault)
    ended = Event()
    with ThreadPoolExecutor(len(writers) + 1) as executor, ExitStack() as stack:
        stack.callback(ended.set)
        writing: list[Future[None]] = [
            executor.submit(
                write, writer, [p for p in range(PARTITIONS) if writer_of(p, writers) is writer], ended
            )
            for writer in writers
        ]
        harming = executor.submit(harm, cluster, faults, ended)
        began = killed_at = time.monotonic()
        while time.monotonic() < began + round_.seconds:
            assert not harming.done(), harming.result()
            if groups and time.monotonic() > killed_at + KILL_INTERVAL:
                killed_at += KILL_INTERVAL
                random.choice(groups).kill(random.randrange(round_.members))
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
