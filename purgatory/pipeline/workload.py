"""The parameters of a synthetic journal."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

# The lower half of an operation's id is its number, as in the ids of a JournalWriter. There are so many.
NUMBERS: Final = 1 << 32


@dataclass(frozen=True, slots=True)
class Kind:
    """Operations that complete after exp(N(ln median, sigma)) seconds, unless they end before that."""

    name: str
    median: float
    sigma: float
    timeout: float


@dataclass(frozen=True, slots=True)
class Workload:
    """The parameters of the operations. Times are in seconds, shares are between 0 and 1."""

    operations: int = 1_000_000
    seed: int = 0
    kinds: tuple[Kind, ...] = (Kind("Fetch", 0.2, 1.0, 0.5), Kind("Produce", 0.02, 0.6, 0.1))
    nodes: int = 3
    keys: int = 10_000
    # The k-th key is used about k ** -zipf times as often as the first.
    zipf: float = 1.1
    # The share of operations that watch the first key. The other operations choose their keys by `zipf`.
    hot: float = 0.0
    # The share of operations that are cancelled at a uniform time before the timeout, if they have not
    # completed.
    withdrawn: float = 0.02
    # The share of rows with a defect.
    malformed: float = 0.001
    start: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    # The time from the first start to the last.
    duration: float = 3600.0
