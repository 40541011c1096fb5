"""Three brokers that tests run by hand, and a controller that elects their leaders."""

from functools import partial

from examples.broker.errors import ApiError, ErrorCode
from examples.broker.metadata import NO_LEADER, PartitionState, TopicConfig
from examples.broker.replication.hosted_partitions import HostedPartitions
from examples.broker.replication.partition import Partition
from examples.broker.replication.replica_manager import ReplicaManager
from examples.broker.storage.record_batch import RecordBatch
from examples.broker.storage.replica import Disk
from examples.broker.topic_partition import TopicPartition
from purgatory import Purgatory
from tests.examples.broker.leader_broker import events, image_of

BROKERS = (0, 1, 2)
MAX_LAG = 10
EVENTS = events()
# A segment has two or three small batches, so that all events also occur across segments.
CONFIG = TopicConfig(min_insync_replicas=1, segment_bytes=50)


class Broker:
    """A replica manager and its disk. After a kill it restarts with that disk alone."""

    def __init__(self, broker_id: int, controller: "Controller") -> None:
        self.broker_id = broker_id
        self.controller = controller
        self.disk = Disk()
        self.purgatories: list[Purgatory] = []

    def start(self) -> None:
        self.purgatories = [Purgatory(name) for name in ("produce", "fetch", "delete records")]
        for purgatory in self.purgatories:
            purgatory.start()
        self.hosted = HostedPartitions(
            self.broker_id,
            disk=self.disk,
            replica_lag_time_max=MAX_LAG,
            alter_partition=partial(self.controller.alter_partition, self.broker_id),
        )
        produce, fetch, delete_records = self.purgatories
        self.replicas = ReplicaManager(
            self.hosted, produce=produce, fetch=fetch, delete_records=delete_records
        )
        self.learn()

    async def kill(self) -> None:
        for purgatory in self.purgatories:
            await purgatory.aclose(cancel_pending=True)

    def learn(self) -> None:
        self.replicas.apply(image_of([self.controller.state], CONFIG), [EVENTS])

    @property
    def partition(self) -> Partition:
        partition = self.hosted.get(EVENTS)
        assert partition is not None
        return partition

    def batches(self) -> list[RecordBatch]:
        return list(self.partition.log.batches())


class Controller:
    """Elects from the in-sync replicas, and changes them for the current leader alone."""

    def __init__(self) -> None:
        self.state = PartitionState(BROKERS, BROKERS, leader=0)
        self.fenced: set[int] = set()

    def alter_partition(
        self, broker_id: int, topic_partition: TopicPartition, wanted: PartitionState
    ) -> PartitionState:
        state = self.state
        if state.leader != broker_id or wanted.leader_epoch != state.leader_epoch:
            raise ApiError(ErrorCode.fenced_leader_epoch, f"{broker_id} does not lead in {state}")
        if wanted.partition_epoch != state.partition_epoch:
            raise ApiError(ErrorCode.invalid_update_version, f"{wanted} is not about {state}")
        if self.fenced.intersection(wanted.in_sync):
            raise ApiError(ErrorCode.ineligible_replica, f"{self.fenced} are fenced")
        self.state = state.with_in_sync(wanted.in_sync)
        return self.state

    def fence(self, broker_id: int) -> None:
        self.fenced.add(broker_id)
        left = tuple(replica for replica in self.state.in_sync if replica != broker_id)
        if left and len(left) < len(self.state.in_sync):
            self.state = self.state.with_in_sync(left)
        if self.state.leader == broker_id:
            self.elect_any()

    def unfence(self, broker_id: int) -> None:
        self.fenced.discard(broker_id)
        if self.state.leader == NO_LEADER:
            self.elect_any()

    def elect_any(self) -> None:
        eligible = [replica for replica in self.state.in_sync if replica not in self.fenced]
        self.state = self.state.led_by(eligible[0] if eligible else NO_LEADER)

    def elect(self, broker_id: int) -> None:
        if broker_id in self.state.in_sync and broker_id not in self.fenced:
            self.state = self.state.led_by(broker_id)
