"""What the curves of waits say: the timeout that a share of operations needs, and what a timeout would do."""

from __future__ import annotations

from dataclasses import dataclass

from purgatory.pipeline.text import duration, less, more, percent


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
    """What a timeout would have done; `survival.effects` explains it."""

    completes: float
    completes_low: float
    completes_high: float
    more_completed: float | None
    more_completed_low: float | None
    more_completed_high: float | None
    waited_less_us: float | None

    def sentence(self, operations: int) -> str:
        """Say it of so many operations. It goes on after "With a timeout of so much,"."""
        within = f"{percent(self.completes_low)} to {percent(self.completes_high)}"
        said = f"{percent(self.completes)} would complete ({within})"
        if self.more_completed is None or self.waited_less_us is None:
            return f"{said}."
        return (
            f"{said}: of these {operations:,} operations {more(self.more_completed)}{self._interval()}. "
            f"All together would have waited {less(self.waited_less_us)}."
        )

    def _interval(self) -> str:
        low, high = (round(each or 0.0) for each in (self.more_completed_low, self.more_completed_high))
        return "" if low == high else f" ({low:+,} to {high:+,})"
