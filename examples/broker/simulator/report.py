"""The status of a simulation at one moment, and the report at its end."""

from dataclasses import dataclass

from examples.broker.simulator.measures import BacklogStatus, WaitSummary
from examples.broker.simulator.workload import Workload


@dataclass(frozen=True, slots=True)
class PurgatoryStatus:
    """One purgatory's counts, and the waits of its producers or consumers, including waits of zero length."""

    pending: int
    completed: int
    expired: int
    waits: WaitSummary


@dataclass(frozen=True, slots=True)
class Status:
    """The state of a simulation ``elapsed`` seconds after its start. It counts records.

    ``backlog`` counts records that are due and not acknowledged, ``lag`` records that are appended and not
    consumed. An ``end_to_end`` wait lasts from the time when a batch is due until it is consumed.
    """

    elapsed: float
    offered: int
    acknowledged: int
    consumed: int
    errors: dict[str, int]
    produce: PurgatoryStatus
    fetch: PurgatoryStatus
    end_to_end: WaitSummary
    backlog: BacklogStatus
    lag: BacklogStatus


@dataclass(frozen=True, slots=True)
class Report:
    """The result: ``under_load`` is the status when producers stopped, ``drained`` when all was consumed.

    The rates are those of the time under load. ``failure`` describes a wrong delivery; it is None when every
    record was delivered correctly.
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
