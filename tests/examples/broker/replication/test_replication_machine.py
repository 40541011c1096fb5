"""Three brokers, a controller, and a network with delays and losses: no acknowledged record is lost."""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from examples.broker.errors import ErrorCode
from examples.broker.metadata import NO_LEADER
from examples.broker.replication.replica_fetcher import LogOffsets, ReplicaFetcher
from examples.broker.replication.requests import ALL_ACKS, Fetched, Fetches, FetchParams, ProduceParams
from examples.broker.storage.record_batch import ProducerSequence, RecordBatch
from examples.broker.topic_partition import TopicPartition
from purgatory import OperationWithdrawn
from purgatory.testing import VirtualTimeLoop
from tests.examples.broker.replication.simulated_brokers import (
    BROKERS,
    EVENTS,
    MAX_LAG,
    Broker,
    ElectingController,
)

NEVER = 1e9
PRODUCER = 7

brokers = st.sampled_from(BROKERS)


@dataclass(eq=False)
class Fetch:
    """A follower's fetch on its way to a leader, and its response on the way back."""

    follower: Broker
    leader: Broker
    params: FetchParams
    request: Fetches
    answer: "asyncio.Future[Fetched]"
    response: Fetched | None = None


@dataclass
class Network:
    """The ``Leader`` of a follower. A fetch is delivered when a rule delivers it."""

    machine: "ReplicationMachine"
    follower: Broker
    leader: Broker

    async def fetch(self, params: FetchParams, request: Fetches) -> Fetched:
        answer: asyncio.Future[Fetched] = asyncio.get_running_loop().create_future()
        fetch = Fetch(self.follower, self.leader, params, request, answer)
        self.machine.fetches.append(fetch)
        return await answer

    async def offsets(self, topic_partition: TopicPartition, leader_epoch: int) -> LogOffsets:
        return await self.leader.replicas.offsets(topic_partition, leader_epoch)


@dataclass(frozen=True)
class Acknowledged:
    offset: int
    data: bytes


class ReplicationMachine(RuleBasedStateMachine):
    """A broker may have any old metadata. Fetches and responses arrive late or never."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner(loop_factory=VirtualTimeLoop)
        self.controller = ElectingController()
        self.brokers = [Broker(broker_id, self.controller) for broker_id in BROKERS]
        self.fetches: list[Fetch] = []
        self.tasks: list[asyncio.Task[Any]] = []
        self.acknowledged: list[Acknowledged] = []
        self.appended = 0
        self.sequence = 0

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        async def settle() -> None:
            await coroutine
            for _ in range(5):
                await asyncio.sleep(0)

        self.runner.run(settle())

    def start_task(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        async def until_the_broker_is_killed() -> None:
            with suppress(OperationWithdrawn):
                await coroutine

        async def start() -> None:
            self.tasks.append(asyncio.create_task(until_the_broker_is_killed()))

        self.run(start())

    def do(self, *calls: Any) -> None:
        async def call_all() -> None:
            for call in calls:
                call()

        self.run(call_all())

    @initialize()
    def start(self) -> None:
        self.do(*(broker.start for broker in self.brokers))

    # Clients

    async def produce(self, broker: Broker, batch: RecordBatch) -> None:
        response = await broker.replicas.append(ProduceParams(ALL_ACKS, NEVER), {EVENTS: batch})
        if response[EVENTS].error is ErrorCode.none:
            self.acknowledged.append(Acknowledged(response[EVENTS].base_offset, batch.data))
            if batch.producer is not None and batch.producer.first_sequence == self.sequence:
                self.sequence += 1

    @rule(broker=brokers, records=st.integers(1, 3))
    def append(self, broker: int, records: int) -> None:
        self.appended += 1
        batch = RecordBatch(records, b"%019d" % self.appended)
        self.start_task(self.produce(self.brokers[broker], batch))

    @rule(broker=brokers)
    def append_or_retry_with_idempotence(self, broker: int) -> None:
        """Send one batch at a time to a possible leader until it is acknowledged."""
        sequence = ProducerSequence(PRODUCER, 0, self.sequence, self.sequence)
        batch = RecordBatch(1, b"sequence %010d" % self.sequence, producer=sequence)
        self.start_task(self.produce(self.brokers[broker], batch))

    @rule(broker=brokers, part=st.floats(0, 1))
    def delete_records(self, broker: int, part: float) -> None:
        partition = self.brokers[broker].partition
        offset = round(partition.high_watermark * part)
        self.start_task(self.brokers[broker].replicas.delete_records(NEVER, {EVENTS: offset}))

    # Replication

    def fetch_from(self, broker: Broker) -> None:
        leader = broker.partition.state.leader
        if leader not in (NO_LEADER, broker.broker_id):
            network = Network(self, broker, self.brokers[leader])
            follower = ReplicaFetcher(network, broker.hosted, [EVENTS], max_wait=0)
            self.start_task(follower.fetch_once())

    async def deliver(self, fetch: Fetch) -> None:
        fetch.response = await fetch.leader.replicas.fetch(fetch.params, fetch.request)

    def answer(self, fetch: Fetch) -> None:
        self.fetches.remove(fetch)
        if fetch.response is None:
            fetch.answer.cancel()
        elif not fetch.answer.done():
            fetch.answer.set_result(fetch.response)

    @rule(broker=brokers)
    def send_a_fetch(self, broker: int) -> None:
        self.fetch_from(self.brokers[broker])

    @precondition(lambda self: any(fetch.response is None for fetch in self.fetches))
    @rule(data=st.data())
    def deliver_a_fetch(self, data: st.DataObject) -> None:
        undelivered = [fetch for fetch in self.fetches if fetch.response is None]
        index = data.draw(st.integers(0, len(undelivered) - 1))
        self.run(self.deliver(undelivered[index]))

    @precondition(lambda self: self.fetches)
    @rule(data=st.data())
    def answer_or_lose_a_fetch(self, data: st.DataObject) -> None:
        index = data.draw(st.integers(0, len(self.fetches) - 1))
        self.do(partial(self.answer, self.fetches[index]))

    @rule(broker=brokers, rounds=st.integers(1, 3))
    def replicate(self, broker: int, rounds: int) -> None:
        """Deliver fetches and their responses at once."""
        for _ in range(rounds):
            before = len(self.fetches)
            self.fetch_from(self.brokers[broker])
            for fetch in self.fetches[before:]:
                self.run(self.deliver(fetch))
                self.do(partial(self.answer, fetch))

    @rule(broker=brokers)
    def shrink_isr(self, broker: int) -> None:
        self.do(self.brokers[broker].replicas.maybe_shrink_isr)

    @rule(seconds=st.integers(1, MAX_LAG + 1))
    def pass_time(self, seconds: int) -> None:
        self.run(asyncio.sleep(seconds))

    # Leadership

    @rule(broker=brokers)
    def learn(self, broker: int) -> None:
        self.do(self.brokers[broker].learn)

    @rule(broker=brokers)
    def fence(self, broker: int) -> None:
        self.controller.fence(broker)

    @rule(broker=brokers)
    def unfence(self, broker: int) -> None:
        self.controller.heartbeat(broker)

    @rule(broker=brokers, known=st.booleans())
    def elect(self, broker: int, known: bool) -> None:
        self.controller.elect(broker)
        if known:
            self.do(self.brokers[broker].learn)

    @rule(broker=brokers)
    def kill_and_start_again(self, broker: int) -> None:
        """Its sent messages may still arrive; messages to it are lost."""
        self.do(*(f.answer.cancel for f in self.fetches if f.follower is self.brokers[broker]))
        self.run(self.brokers[broker].kill())
        self.do(self.brokers[broker].start)

    # Invariants

    @invariant()
    def nothing_goes_wrong_unseen(self) -> None:
        for task in [task for task in self.tasks if task.done()]:
            self.tasks.remove(task)
            if not task.cancelled():
                task.result()

    @invariant()
    def what_is_acknowledged_is_on_every_replica_in_sync(self) -> None:
        for broker_id in self.controller.state.in_sync:
            broker = self.brokers[broker_id]
            if not broker.purgatories:
                return
            stored = {batch.base_offset: batch.data for batch in broker.batches()}
            start = broker.partition.log.log_start_offset
            for record in self.acknowledged:
                assert stored.get(record.offset) == record.data or record.offset < start

    @invariant()
    def no_high_watermark_is_past_the_end_of_a_replica_in_sync(self) -> None:
        for broker in filter(lambda broker: broker.purgatories, self.brokers):
            for in_sync in (*self.controller.state.in_sync, broker.broker_id):
                end = self.brokers[in_sync].partition.log.log_end_offset
                assert broker.partition.high_watermark <= end

    @invariant()
    def logs_agree_below_their_high_watermarks(self) -> None:
        committed: dict[int, RecordBatch] = {}
        for broker in filter(lambda broker: broker.purgatories, self.brokers):
            for batch in broker.batches():
                if batch.next_offset <= broker.partition.high_watermark:
                    assert committed.setdefault(batch.base_offset, batch) == batch

    @invariant()
    def no_log_has_an_idempotent_batch_twice_or_out_of_order(self) -> None:
        for broker in filter(lambda broker: broker.purgatories, self.brokers):
            sequences = [
                batch.producer.first_sequence for batch in broker.batches() if batch.producer is not None
            ]
            assert (
                sequences == list(range(sequences[0], sequences[0] + len(sequences))) if sequences else True
            )

    def teardown(self) -> None:
        """Once all messages arrive, all logs are equal, and no operation is pending."""
        try:
            if self.brokers[0].purgatories:
                self.heal()
        finally:
            for broker in self.brokers:
                self.runner.run(broker.kill())
            self.runner.close()

    def heal(self) -> None:
        self.do(*(partial(self.answer, fetch) for fetch in list(self.fetches)))
        for broker_id in BROKERS:
            self.controller.heartbeat(broker_id)
        self.do(*(broker.learn for broker in self.brokers))
        for _ in range(20):
            for broker in self.brokers:
                self.fetch_from(broker)
            for fetch in list(self.fetches):
                self.run(self.deliver(fetch))
                self.do(partial(self.answer, fetch))
            self.run(asyncio.sleep(1))
        # A leader may have told a deletion to some followers only, before another one led.
        start = max(broker.partition.log.log_start_offset for broker in self.brokers)
        kept = [[batch for batch in broker.batches() if batch.next_offset > start] for broker in self.brokers]
        assert kept[0] == kept[1] == kept[2]
        assert len({broker.partition.high_watermark for broker in self.brokers}) == 1
        assert set(self.controller.state.in_sync) == set(BROKERS)
        self.what_is_acknowledged_is_on_every_replica_in_sync()
        self.no_log_has_an_idempotent_batch_twice_or_out_of_order()
        for broker in self.brokers:
            assert broker.partition.high_watermark == broker.partition.log.log_end_offset
            assert all(each.pending == 0 for each in broker.replicas.statistics().values())


TestReplicationUnderAnyFault = ReplicationMachine.TestCase
TestReplicationUnderAnyFault.settings = settings(stateful_step_count=50)


def test_a_fetch_from_before_two_elections_acknowledges_nothing() -> None:
    """Its offset and last epoch match the leader's log. Only its leader epoch shows that it is late."""
    machine = ReplicationMachine()
    machine.start()
    try:
        machine.append(0, records=1)
        machine.replicate(1, rounds=1)
        machine.send_a_fetch(1)
        machine.elect(2, known=True)
        machine.learn(1)
        machine.replicate(1, rounds=2)
        assert machine.brokers[1].batches() == [], "what broker 2 did not have is cut"
        machine.elect(0, known=True)
        machine.run(machine.deliver(machine.fetches[0]))
        machine.learn(2)
        machine.replicate(2, rounds=3)
        assert machine.brokers[0].partition.high_watermark == 0
        assert machine.acknowledged == []
    finally:
        machine.teardown()
