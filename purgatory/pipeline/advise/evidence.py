"""What the journal says about the timeout of a kind of operation, by the curve of its waits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from purgatory.pipeline.text import counted, duration, less, more, percent, rounded

# A shorter timeout is this many times as long as operations need. So operations may become slower and still
# complete.
HEADROOM: Final = 2

# Pairs of a timeout, None for no timeout, and the number of operations that have this timeout.
Mixture = Sequence[tuple[int | None, int]]


@dataclass(frozen=True, slots=True)
class Reading:
    """The timeout by which a share of the operations of a kind would complete.

    A row of the table of timeouts; `survival.timeouts` explains the columns.
    """

    purgatory: str
    kind: str
    # None for the whole kind.
    key: str | None
    operations: int
    waited_in_all_us: int
    followed_us: int
    known_share: float
    settled_us: int | None
    share: float
    timeout_us: int | None
    timeout_low_us: int | None
    timeout_high_us: int | None
    naive_us: int | None

    @property
    def stratum(self) -> tuple[str, str, str | None]:
        return self.purgatory, self.kind, self.key

    @property
    def timeout(self) -> str:
        """The timeout, or the longest wait if the timeout is longer than that."""
        return f"> {duration(self.followed_us)}" if self.timeout_us is None else duration(self.timeout_us)


@dataclass(frozen=True, slots=True)
class Effect:
    """What a timeout would have done; `effects.effects` explains it."""

    completes: float
    completes_low: float
    completes_high: float
    more_completed: float | None
    more_completed_low: float | None
    more_completed_high: float | None
    waited_less_us: float | None

    def sentence(self, operations: int) -> str:
        """The effect on this number of operations, in words. The text goes on after "With 500 ms,"."""
        within = f"{percent(self.completes_low)} to {percent(self.completes_high)}"
        said = f"{percent(self.completes)} would complete ({within})"
        if self.more_completed is None or self.waited_less_us is None:
            return f"{said}."
        return (
            f"{said}. Of {counted(operations, 'recorded operation')}, {more(self.more_completed)}"
            f"{self._interval()} would have completed. All together would have waited "
            f"{less(self.waited_less_us)}."
        )

    def _interval(self) -> str:
        low, high = (round(each or 0.0) for each in (self.more_completed_low, self.more_completed_high))
        return "" if low == high else f" ({low:+,} to {high:+,})"


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the journal says about a kind, or about a kind on one key.

    `p99` is the reading of its curve for 99 %. `mixture` has its most frequent timeouts; the most frequent
    timeout comes first. `effects` has the effects of `candidates`.
    """

    p99: Reading
    mixture: Mixture
    effects: Mapping[int, Effect]

    @property
    def present_us(self) -> int | None:
        """The most frequent timeout. None if operations never expire, and 0 only if no operation waits."""
        return next((timeout for timeout, _ in self.mixture if timeout != 0), self.mixture[0][0])

    @property
    def with_present(self) -> float:
        """The share of the operations that have the present timeout."""
        return dict(self.mixture)[self.present_us] / self.p99.operations

    @property
    def now(self) -> Effect:
        """The effect of the present timeout. If there is none, the effect of the longest wait."""
        return self.effects[self._until]

    @property
    def shorter_us(self) -> int | None:
        """The timeout to shorten to. None if it is unknown, or more than half of the present timeout."""
        if self.p99.settled_us is None:
            return None
        shorter = HEADROOM * self.p99.settled_us
        return shorter if self.present_us is None or 2 * shorter <= self.present_us else None

    @property
    def longer_us(self) -> int | None:
        """The timeout to lengthen to, if the present timeout is too short. None if it is unknown."""
        longer = self.p99.timeout_high_us
        return None if longer is None or longer <= self._until else longer

    @property
    def candidates(self) -> list[int]:
        """The timeouts whose effects a verdict needs."""
        timeouts = {self._until, self.shorter_us, self.longer_us}
        return sorted(timeout for timeout in timeouts if timeout is not None)

    @property
    def times_p99(self) -> float | None:
        """The present timeout divided by the wait by which 99 % complete. None if one of them is missing."""
        if self.present_us is None or not self.p99.timeout_us:
            return None
        return self.present_us / self.p99.timeout_us

    def within(self) -> str:
        """Say which share completes within the present timeout, and how many times p99 the timeout is."""
        now, reading = self.now, self.p99
        interval = f"{percent(now.completes_low)} to {percent(now.completes_high)}"
        limit = duration(self._until) + ("" if self.present_us is not None else ", the longest wait")
        far = (
            ""
            if self.times_p99 is None
            else f", which is {rounded(self.times_p99)} times p99, {reading.timeout}"
        )
        return f"{percent(now.completes)} complete within {limit} ({interval}){far}"

    def timeouts(self) -> str:
        """The present timeouts. If there are several, each has its share: 500 ms (90 %), 2.00 s (10 %)."""
        if len(self.mixture) == 1:
            return named(self.mixture[0][0])
        shares = [(named(timeout), number / self.p99.operations) for timeout, number in self.mixture]
        others = self.p99.operations - sum(number for _, number in self.mixture)
        if others:
            shares.append(("others", others / self.p99.operations))
        return ", ".join(f"{name} ({percent(share)})" for name, share in shares)

    @property
    def _until(self) -> int:
        return self.p99.followed_us if self.present_us is None else self.present_us


def named(timeout_us: int | None) -> str:
    return "no timeout" if timeout_us is None else duration(timeout_us)
