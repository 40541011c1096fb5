"""Which tick and wheel size to take, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from purgatory._core.timer import DEFAULT_WHEEL_SIZE
from purgatory.pipeline.advice import duration
from purgatory.pipeline.transforms.reaper import Setting

# What a Purgatory has unless it is told otherwise.
DEFAULT: Final = Setting(tick_us=1_000, wheel_size=DEFAULT_WHEEL_SIZE)

# A setting that saves less than this for each operation is not worth the change: to park and complete one
# takes about as long as a few moves.
WORTHWHILE: Final = 0.01


@dataclass(frozen=True, slots=True)
class Measured:
    """A setting, and what it would have meant: a row of the table of settings, see `replay.measured`."""

    purgatory: str
    tick_us: int
    wheel_size: int
    since: datetime
    until: datetime
    operations: int
    wakeups: int
    moves: int
    fullest_slot: int
    levels: int
    expired: int
    lateness_mean_us: float | None
    lateness_p99_us: float | None
    lateness_max_us: int | None
    pareto: bool

    @property
    def work(self) -> int:
        return self.wakeups + self.moves

    @property
    def late_us(self) -> float:
        """The p99 of lateness; where nothing expired, what it may be."""
        return self.tick_us if self.lateness_p99_us is None else self.lateness_p99_us

    @property
    def is_default(self) -> bool:
        return Setting(self.tick_us, self.wheel_size) == DEFAULT

    @property
    def name(self) -> str:
        return f"a tick of {self.tick_us / 1000:g} ms and {self.wheel_size} slots"


@dataclass(frozen=True, slots=True)
class Recommendation:
    """The setting to take for a purgatory, beside the default, and which lateness was acceptable."""

    chosen: Measured
    default: Measured
    acceptable_us: int

    def sentence(self) -> str:
        """What to take and why, in one sentence."""
        chosen, default = self.chosen, self.default
        limit = f"at most {duration(self.acceptable_us)} late"
        if chosen.is_default:
            return (
                f"Keep the default for {default.purgatory}, {default.name}: for {default.operations:,} "
                f"operations its reaper wakes {_times(default.wakeups)} and moves {default.moves:,} of them, "
                f"and no setting that is {limit} saves one of these for every hundred operations."
            )
        lateness = (
            f"99 % of what expires is at most {duration(chosen.late_us)} late instead of "
            f"{duration(default.late_us)}"
            if chosen.expired
            else f"nothing expired, but it could be up to {duration(chosen.tick_us)} late"
        )
        reason = (
            f"no setting that is {limit} has less to do"
            if chosen.late_us <= self.acceptable_us
            else f"no setting is {limit}, and none is less late than this one"
        )
        return (
            f"Take {chosen.name} for {chosen.purgatory}: for {chosen.operations:,} operations its reaper "
            f"wakes {_times(chosen.wakeups)} instead of {_times(default.wakeups)} with the default, "
            f"{default.name}, and moves {chosen.moves:,} of them instead of {default.moves:,}; {lateness}; "
            f"{reason}."
        )


def recommend(settings: Sequence[Measured], acceptable_us: int) -> Recommendation:
    """Of the settings of one purgatory, among them the default, the one with the least work.

    None that is later than acceptable, unless all are: then the one that is least late. The default, where no
    other is worth the change.
    """
    default = next(setting for setting in settings if setting.is_default)
    best = [setting for setting in settings if setting.pareto]
    least_late = min(setting.late_us for setting in best)
    limit = max(acceptable_us, least_late)
    chosen = min((setting for setting in best if setting.late_us <= limit), key=lambda each: each.work)
    if default.late_us <= limit and default.work - chosen.work < WORTHWHILE * default.operations:
        chosen = default
    return Recommendation(chosen, default, acceptable_us)


def _times(number: int) -> str:
    return {1: "once", 2: "twice"}.get(number, f"{number:,} times")
