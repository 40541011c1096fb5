"""What a simulation is asked to do."""

from dataclasses import dataclass

from examples.broker.replication.produce import ALL_ACKS
from examples.broker.simulator.batch_identity import HEADER_BYTES


@dataclass(frozen=True, slots=True)
class Workload:
    """Offered load and shape of the cluster; rates in records per second, sizes in bytes, times in seconds.

    ValueError in plain words when the values do not fit each other.
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
                f"{self.consumers} consumers for {self.partitions} partitions: each partition has one, "
                f"so {self.consumers - self.partitions} would have nothing to do"
            )
        if self.batch_bytes < HEADER_BYTES:
            raise ValueError(
                f"a batch of {self.batch} x {self.record_size} bytes is too small: "
                f"it carries {HEADER_BYTES} bytes that tell its records apart"
            )
        if self.batch_bytes > self.segment_bytes:
            raise ValueError(
                f"a batch of {self.batch} x {self.record_size} bytes does not fit a segment of "
                f"{self.segment_bytes} bytes"
            )

    @property
    def batch_bytes(self) -> int:
        return self.batch * self.record_size
