"""A timeout that the advisor computed, and the sentence that explains it."""

from __future__ import annotations

from dataclasses import dataclass
from math import floor

from purgatory.pipeline.transforms.survival import EXACTNESS


@dataclass(frozen=True, slots=True)
class Advice:
    """The timeout by which a share of the operations of a kind would complete, and its effect.

    A row of the table of timeouts; `survival.timeouts` and `survival.changes` explain the columns.
    """

    purgatory: str
    kind: str
    # None for the whole kind.
    key: str | None
    operations: int
    followed_us: int
    known_share: float
    share: float
    timeout_us: int | None
    timeout_low_us: int | None
    timeout_high_us: int | None
    naive_us: int | None
    more_completed: float | None
    waited_less_us: float | None

    @property
    def stratum(self) -> str:
        of_kind = f"{self.kind} in {self.purgatory}"
        return of_kind if self.key is None else f"{of_kind} on {self.key}"

    @property
    def timeout(self) -> str:
        """The timeout, or the longest wait if the timeout is longer than that."""
        return f"> {duration(self.followed_us)}" if self.timeout_us is None else duration(self.timeout_us)

    def sentence(self) -> str:
        """Explain the effect of this timeout in one sentence."""
        share = f"{100 * self.share:g} %"
        if self.timeout_us is None or self.more_completed is None or self.waited_less_us is None:
            # Rounded down: 99.996 % are not all.
            known = floor(10_000 * (self.known_share + EXACTNESS)) / 100
            return (
                f"The timeout by which {share} of {self.stratum} complete is not identifiable beyond "
                f"{duration(self.followed_us)}, the longest wait recorded: {known:g} % complete within it."
            )
        return (
            f"With a timeout of {duration(self.timeout_us)}, {share} of {self.stratum} complete: "
            f"of these {self.operations:,} operations {_more(self.more_completed)} would have completed, "
            f"and all together would have waited {_less(self.waited_less_us)}."
        )


def duration(microseconds: float) -> str:
    """Format a duration with three digits, in the unit that fits."""
    for unit, size, least in (("h", 3.6e9, 7.2e9), ("min", 6e7, 1.2e8), ("s", 1e6, 1e6), ("ms", 1e3, 1e3)):
        if microseconds >= least:
            number = microseconds / size
            decimals = 2 if number < 10 else 1 if number < 100 else 0
            return f"{number:,.{decimals}f} {unit}"
    return f"{microseconds:.0f} µs"


def _more(operations: float) -> str:
    number = round(operations)
    return f"{abs(number):,} {'more' if number > 0 else 'fewer'}" if number else "as many"


def _less(microseconds: float) -> str:
    return f"{duration(abs(microseconds))} {'less' if microseconds >= 0 else 'more'}"
