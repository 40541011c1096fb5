"""What a simulation shows: its state at one moment, and its outcome."""

from dataclasses import asdict, dataclass

from examples.broker.simulator.waits import WaitSummary
from examples.broker.simulator.workload import Workload
from examples.broker.topic_partition import TopicPartition


@dataclass(frozen=True, slots=True)
class PurgatoryStatus:
    """One purgatory's counts, and how long its producers or consumers waited, parked or not."""

    pending: int
    completed: int
    expired: int
    waits: WaitSummary


@dataclass(frozen=True, slots=True)
class PartitionStatus:
    topic_partition: TopicPartition
    log_start_offset: int
    high_watermark: int
    log_end_offset: int
    consumer_position: int
    in_sync_replicas: tuple[int, ...]
    segments: int


@dataclass(frozen=True, slots=True)
class BacklogStatus:
    """Records that wait, and whether ever more do; ``history`` covers the whole run."""

    latest: float
    peak: float
    growth_per_second: float
    growing: bool
    history: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Status:
    """Where a simulation stands, ``elapsed`` seconds after its start; counts are of records.

    ``backlog`` is what was offered and not acknowledged, ``lag`` what was appended and not consumed.
    ``end_to_end`` waits run from when a batch was due at its producer until it was consumed.
    """

    elapsed: float
    offered: int
    acknowledged: int
    consumed: int
    errors: dict[str, int]
    produce: PurgatoryStatus
    fetch: PurgatoryStatus
    end_to_end: WaitSummary
    partitions: tuple[PartitionStatus, ...]
    backlog: BacklogStatus
    lag: BacklogStatus


@dataclass(frozen=True, slots=True)
class Report:
    """The outcome: ``under_load`` when producers stopped, ``drained`` when everything was consumed.

    Rates are over the time under load. ``failure`` says what is wrong with the delivery, None when every
    record is accounted for.
    """

    workload: Workload
    loop: str
    compiled: bool
    under_load: Status
    drained: Status
    batches_verified: int
    failure: str | None

    @property
    def keeps_up(self) -> bool:
        return not (self.under_load.backlog.growing or self.under_load.lag.growing)

    @property
    def acknowledged_per_second(self) -> float:
        return self.under_load.acknowledged / self.under_load.elapsed

    @property
    def consumed_per_second(self) -> float:
        return self.under_load.consumed / self.under_load.elapsed

    def as_json(self) -> dict[str, object]:
        """Plain values, for ``json.dumps``: seconds, records, bytes."""
        return {
            "verified": self.failure is None,
            "failure": self.failure,
            "keeps_up": self.keeps_up,
            "acknowledged_per_second": self.acknowledged_per_second,
            "consumed_per_second": self.consumed_per_second,
            "batches_verified": self.batches_verified,
            "loop": self.loop,
            "compiled": self.compiled,
            "workload": asdict(self.workload),
            "under_load": asdict(self.under_load),
            "drained": asdict(self.drained),
        }
