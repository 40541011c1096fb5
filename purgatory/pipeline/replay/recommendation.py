"""Recommends a tick and a wheel size, and explains the choice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from purgatory._core.timer import DEFAULT_WHEEL_SIZE
from purgatory.pipeline.replay.reaper import Setting
from purgatory.pipeline.text import counted, duration, rounded

# The default of a Purgatory.
DEFAULT: Final = Setting(tick_us=1_000, wheel_size=DEFAULT_WHEEL_SIZE)

# A setting is not worth the change if it saves fewer wake-ups and moves than this for each operation. It
# takes about as long as a few moves to park and complete an operation.
WORTHWHILE: Final = 0.01


@dataclass(frozen=True, slots=True)
class ReplayedSetting:
    """A setting, and the results of its replay. A row of the table of settings; see `settings.by_setting`."""

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
        """The 99th percentile of lateness. If no operation expired, the tick: no lateness is higher."""
        return self.tick_us if self.lateness_p99_us is None else self.lateness_p99_us

    @property
    def is_default(self) -> bool:
        return Setting(self.tick_us, self.wheel_size) == DEFAULT

    @property
    def name(self) -> str:
        return f"a tick of {self.tick} and {self.wheel_size:,} slots"

    @property
    def tick(self) -> str:
        return f"{rounded(self.tick_us / 1000)} ms"


@dataclass(frozen=True, slots=True)
class Recommendation:
    """The recommended setting of a purgatory, its default, and the acceptable lateness."""

    chosen: ReplayedSetting
    default: ReplayedSetting
    acceptable_us: int

    def sentence(self) -> str:
        """The recommendation and its reasons, in words."""
        chosen, default = self.chosen, self.default
        limit = f"at most {duration(self.acceptable_us)} late"
        operations = counted(chosen.operations, "operation")
        if chosen.is_default:
            return (
                f"Keep the default for {default.purgatory}, {default.name}. For {operations} its reaper "
                f"wakes {_times(default.wakeups)} and makes {counted(default.moves, 'move')}. No setting "
                f"that is {limit} saves a wake-up or a move for every hundred operations."
            )
        gain = (
            "Each wake-up and each move takes time of the event loop, and the service gets this time."
            if chosen.work < default.work
            else "Operations expire sooner after their deadlines."
        )
        lateness = (
            f"99 % of the expirations are at most {duration(chosen.late_us)} late, and "
            f"{duration(default.late_us)} with the default"
            if chosen.expired
            else f"No operation expired, but one could be up to {duration(chosen.tick_us)} late"
        )
        best = (
            f"No setting that is {limit} makes less work"
            if chosen.late_us <= self.acceptable_us
            else f"No setting is {limit}, and none is less late than this one"
        )
        return (
            f"Take {chosen.name} for {chosen.purgatory}. For {operations} its reaper wakes "
            f"{_times(chosen.wakeups)} and makes {counted(chosen.moves, 'move')}. With the default, "
            f"{default.name}, it wakes {_times(default.wakeups)} and makes {counted(default.moves, 'move')}. "
            f"{gain} {lateness}. {best}."
        )


def recommend(settings: Sequence[ReplayedSetting], acceptable_us: int) -> Recommendation:
    """Choose the setting with the least work. `settings` are of one purgatory, and include the default.

    Settings that are later than acceptable are excluded. If no setting is acceptable, the least late
    setting is chosen. The default is chosen if no other setting is worth the change.
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
