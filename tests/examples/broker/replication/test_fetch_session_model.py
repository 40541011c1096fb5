"""A session that reads what changed answers and decides as fetches that read everything do."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AsyncExitStack
from dataclasses import replace
from itertools import count
from typing import Any, TypeVar
from uuid import UUID

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from examples.broker.errors import ApiError, ErrorCode
from examples.broker.metadata import MetadataImage, PartitionState, TopicConfig, TopicImage
from examples.broker.replication.fetch_sessions import FetchSession, FetchSessions
from examples.broker.replication.follower_request import epoch_after
from examples.broker.replication.hosted_partitions import HostedPartitions
from examples.broker.replication.replica_manager import ReplicaManager
from examples.broker.replication.requests import (
    CONSUMER,
    LEADER_ACK,
    Fetched,
    FetchParams,
    PartitionFetch,
    ProduceParams,
)
from examples.broker.storage.record_batch import RecordBatch
from examples.broker.topic_partition import TopicPartition
from purgatory.testing import VirtualTimeLoop

R = TypeVar("R")

MAX_LAG = 10
PARTITIONS = tuple(TopicPartition(name, 0) for name in ("one", "two"))
READERS = (1, 2, CONSUMER)
# A segment has two batches, so that the logs roll.
CONFIG = TopicConfig(min_insync_replicas=1, segment_bytes=50)
LED_HERE = PartitionState((0, 1, 2), (0, 1, 2), leader=0)

METADATA_CHANGES = ("lead", "follow", "shrink", "remove", "add", "create again")

partitions = st.sampled_from(PARTITIONS)
readers = st.sampled_from(READERS)


class Leader:
    """Broker 0 of one cluster, and its controller, which refuses changes of the in-sync replicas at times."""

    replicas: ReplicaManager

    def __init__(self) -> None:
        self.refuses = False
        self.hosted = HostedPartitions(0, replica_lag_time_max=MAX_LAG, alter_partition=self.alter_partition)

    def alter_partition(self, topic_partition: TopicPartition, wanted: PartitionState) -> PartitionState:
        if self.refuses:
            raise ApiError(ErrorCode.ineligible_replica, "not now")
        return wanted.with_in_sync(wanted.in_sync)

    def state(self) -> list[tuple[Any, ...]]:
        found = filter(None, map(self.hosted.get, PARTITIONS))
        return [(each.state, each.high_watermark, each.log.log_end_offset) for each in found]


class SessionModel(RuleBasedStateMachine):
    """Two leaders live through the same; one serves sessions, the other one reads all partitions each time.

    ``told`` has the watermarks that each reader in a session knows.
    """

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner(loop_factory=VirtualTimeLoop)
        self.stack = AsyncExitStack()
        self.states = dict.fromkeys(PARTITIONS, LED_HERE)
        self.topic_ids: Iterator[int] = count(1)
        self.ids = {entry: UUID(int=next(self.topic_ids)) for entry in PARTITIONS}
        self.wanted = {reader: dict.fromkeys(PARTITIONS, PartitionFetch(0)) for reader in READERS}
        self.sent: dict[int, dict[TopicPartition, PartitionFetch]] = {reader: {} for reader in READERS}
        self.told: dict[int, dict[TopicPartition, tuple[int, int]]] = {reader: {} for reader in READERS}
        self.sessions: dict[int, FetchSession] = {}

    def run(self, coroutine: Coroutine[Any, Any, R]) -> R:
        return self.runner.run(coroutine)

    def both(self, call: Callable[[Leader], R]) -> None:
        async def call_both() -> None:
            call(self.with_sessions)
            call(self.reading_all)

        self.run(call_both())

    @initialize()
    def start(self) -> None:
        async def start() -> None:
            self.with_sessions, self.reading_all = Leader(), Leader()
            image = self.image()
            for leader in (self.with_sessions, self.reading_all):
                running = ReplicaManager.running(leader.hosted)
                leader.replicas = await self.stack.enter_async_context(running)
                leader.replicas.apply(image, PARTITIONS)
            self.fetch_sessions = FetchSessions(self.with_sessions.replicas)
            for reader in READERS:
                session = self.fetch_sessions.open(reader, {})
                self.sessions[reader] = session

        self.run(start())
        for reader in READERS:
            self.fetch(reader)

    def image(self) -> MetadataImage:
        return MetadataImage(
            topics={
                entry.topic: TopicImage(entry.topic, self.ids[entry], (state,), CONFIG)
                for entry, state in self.states.items()
            }
        )

    def change(self, topic_partition: TopicPartition, **fields: Any) -> None:
        known = self.with_sessions.hosted.get(topic_partition)
        state = self.states[topic_partition] if known is None else known.state
        self.states[topic_partition] = replace(state, partition_epoch=state.partition_epoch + 1, **fields)
        image = self.image()
        self.both(lambda leader: leader.replicas.apply(image, [topic_partition]))

    # What changes a partition

    @rule(entry=partitions)
    def append(self, entry: TopicPartition) -> None:
        async def append() -> None:
            for leader in (self.with_sessions, self.reading_all):
                await leader.replicas.append(ProduceParams(LEADER_ACK), {entry: RecordBatch(1, b"x" * 20)})

        self.run(append())

    @rule(entry=partitions, part=st.floats(0, 1))
    def delete_records(self, entry: TopicPartition, part: float) -> None:
        def delete(leader: Leader) -> None:
            partition = leader.hosted.get(entry)
            if partition is not None and partition.is_leader:
                partition.delete_records(round(partition.high_watermark * part))

        self.both(delete)

    @rule(entry=partitions, happens=st.sampled_from(METADATA_CHANGES))
    def change_metadata(self, entry: TopicPartition, happens: str) -> None:
        epoch = self.states[entry].leader_epoch + 1
        if happens == "lead":
            self.change(entry, leader=0, leader_epoch=epoch)
        elif happens == "follow":
            self.change(entry, leader=1, leader_epoch=epoch)
        elif happens == "shrink":
            self.change(entry, in_sync=(0,))
        elif happens == "remove":
            self.change(entry, replicas=(1, 2))
        elif happens == "add":
            self.change(entry, replicas=LED_HERE.replicas)
        else:
            self.ids[entry] = UUID(int=next(self.topic_ids))
            self.states[entry] = LED_HERE
            image = self.image()
            self.both(lambda leader: leader.replicas.apply(image, [entry]))

    @rule(refuses=st.booleans())
    def refuse(self, refuses: bool) -> None:
        self.with_sessions.refuses = self.reading_all.refuses = refuses

    @rule(seconds=st.integers(1, MAX_LAG + 1))
    def pass_time(self, seconds: int) -> None:
        self.run(asyncio.sleep(seconds))

    @rule()
    def shrink_isr(self) -> None:
        self.both(lambda leader: leader.replicas.maybe_shrink_isr())

    # What a reader asks for

    @rule(reader=readers, entry=partitions, back=st.integers(0, 1), knows_epoch=st.booleans())
    def want(self, reader: int, entry: TopicPartition, back: int, knows_epoch: bool) -> None:
        """Ask for a partition from its end on, or from before that."""
        known = self.with_sessions.hosted.get(entry)
        offset = 0 if known is None else known.log.log_end_offset - back
        epoch = -1 if known is None or not knows_epoch else known.leader_epoch
        self.wanted[reader][entry] = PartitionFetch(max(0, offset), current_leader_epoch=epoch)

    @rule(reader=readers, entry=partitions)
    def leave_out(self, reader: int, entry: TopicPartition) -> None:
        self.wanted[reader].pop(entry, None)

    @rule(reader=readers)
    def fetch_from_the_end(self, reader: int) -> None:
        """Ask for what was not read yet, as most fetches do."""
        for entry in self.wanted[reader]:
            self.want(reader, entry, back=0, knows_epoch=False)
        self.fetch(reader)

    @rule(reader=readers)
    def fetch(self, reader: int) -> None:
        """Whatever a read of all partitions tells, the reader in a session knows, too."""
        params = FetchParams(reader, max_wait=0)
        wanted = dict(self.wanted[reader])
        news = self.run(self.fetch_in_session(params, wanted))
        for entry, fetched in self.run(self.reading_all.replicas.fetch(params, wanted)).items():
            if entry in news:
                assert news[entry] == fetched
                self.told[reader][entry] = (fetched.high_watermark, fetched.log_start_offset)
            assert self.told[reader][entry] == (fetched.high_watermark, fetched.log_start_offset)
            assert entry in news or not (fetched.batches or fetched.is_error_or_divergence)

    async def fetch_in_session(
        self, params: FetchParams, wanted: dict[TopicPartition, PartitionFetch]
    ) -> Fetched:
        reader = params.replica_id
        sent, self.sent[reader] = self.sent[reader], wanted
        forgotten = [entry for entry in sent if entry not in wanted]
        for entry in forgotten:
            self.told[reader].pop(entry, None)
        session = self.fetch_sessions.resume(
            reader,
            self.sessions[reader].session_id,
            epoch_after(self.sessions[reader].epoch),
            {entry: fetch for entry, fetch in wanted.items() if sent.get(entry) != fetch},
            forgotten,
        )
        return await self.fetch_sessions.fetch(params, session)

    @invariant()
    def both_leaders_decide_the_same(self) -> None:
        if hasattr(self, "with_sessions"):
            assert self.with_sessions.state() == self.reading_all.state()

    @invariant()
    def a_partition_that_is_set_aside_has_nothing_new(self) -> None:
        for reader, session in self.sessions.items():
            aside = {
                entry: wanted for entry, wanted in session.partitions.items() if entry not in session.unread
            }
            for entry, read in self.with_sessions.hosted.read(FetchParams(reader), aside).items():
                assert read.batches == ()
                assert not read.is_error_or_divergence
                assert self.told[reader][entry] == (read.high_watermark, read.log_start_offset)

    def teardown(self) -> None:
        self.run(self.stack.aclose())
        self.runner.close()


TestSessionsTellAsMuchAsFullReads = SessionModel.TestCase
TestSessionsTellAsMuchAsFullReads.settings = settings(stateful_step_count=50)
