"""The workload of a simulation, and what its producers and consumers share."""

from collections.abc import Callable
from dataclasses import dataclass, field

from examples.broker.replication.replica_manager import ReplicaManager
from examples.broker.replication.requests import ALL_ACKS
from examples.broker.simulator.delivery import HEADER_BYTES, DeliveryCheck
from examples.broker.simulator.measures import Waits


@dataclass(frozen=True, slots=True)
class Workload:
    """The load and the cluster. Rates are in records per second, sizes in bytes, times in seconds.

    Raises ValueError when the values do not fit each other.
    """

    rate: float = 50_000
    batch: int = 100
    record_size: int = 100
    partitions: int = 6
    replicas: int = 3
    acks: int = ALL_ACKS
    min_bytes: int = 1
    max_wait: float = 0.5
    producers: int = 4
    consumers: int = 3
    duration: float = 10.0
    seed: int = 0
    segment_bytes: int = 1 << 20

    def __post_init__(self) -> None:
        if self.consumers > self.partitions:
            raise ValueError(
                f"{self.consumers} consumers for {self.partitions} partitions: each partition has one "
                f"consumer, so use at most {self.partitions} consumers"
            )
        if self.batch_bytes < HEADER_BYTES:
            raise ValueError(
                f"a batch of {self.batch} x {self.record_size} bytes is too small: "
                f"its header, which identifies its records, has {HEADER_BYTES} bytes"
            )

    @property
    def batch_bytes(self) -> int:
        return self.batch * self.record_size


@dataclass(frozen=True, slots=True)
class Run:
    """One run of a workload on a broker: its clock, the check of the delivery, and the waits."""

    workload: Workload
    broker: ReplicaManager
    clock: Callable[[], float]
    delivery: DeliveryCheck = field(default_factory=DeliveryCheck)
    produce_waits: Waits = field(default_factory=Waits)
    fetch_waits: Waits = field(default_factory=Waits)
    end_to_end_waits: Waits = field(default_factory=Waits)
