"""Three brokers that tests run by hand, and their controller."""

from functools import partial

from examples.broker.controller.controller import Controller
from examples.broker.controller.new_topic import NewTopic
from examples.broker.controller.settings import ClusterDefaults
from examples.broker.metadata import PartitionState, TopicConfig
from examples.broker.replication.hosted_partitions import HostedPartitions
from examples.broker.replication.partition import Partition
from examples.broker.replication.replica_manager import ReplicaManager
from examples.broker.storage.record_batch import RecordBatch
from examples.broker.storage.replica import Disk
from purgatory import Purgatory
from purgatory.testing import ManualClock
from tests.examples.broker.controller.controlled_cluster import registration
from tests.examples.broker.leader_broker import events

BROKERS = (0, 1, 2)
MAX_LAG = 10
EVENTS = events()
# A segment has two or three small batches, so that all events also occur across segments.
CONFIG = TopicConfig(min_insync_replicas=1, segment_bytes=50)


class Broker:
    """A replica manager and its disk. After a kill it restarts with that disk alone."""

    def __init__(self, broker_id: int, controller: Controller) -> None:
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
        self.replicas.apply(self.controller.image, [EVENTS])

    @property
    def partition(self) -> Partition:
        partition = self.hosted.get(EVENTS)
        assert partition is not None
        return partition

    def batches(self) -> list[RecordBatch]:
        return list(self.partition.log.batches())


class ElectingController(Controller):
    """The controller of three brokers, whose sessions never end. It lets any in-sync replica lead."""

    def __init__(self) -> None:
        sessions, images = map(ManualClock().purgatory, ("broker session", "image"))
        super().__init__(ClusterDefaults(), sessions=sessions, images=images)
        for broker_id in BROKERS:
            self.register(registration(broker_id))
        self.create(NewTopic(EVENTS.topic, assignment=(BROKERS,), config=CONFIG))

    @property
    def state(self) -> PartitionState:
        state = self.image.partition(EVENTS)
        assert state is not None
        return state

    def elect(self, broker_id: int) -> None:
        if broker_id in self.state.in_sync and broker_id in self.image.live_brokers:
            self._put_partitions({EVENTS: self.state.led_by(broker_id)})
