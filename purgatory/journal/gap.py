"""A stretch of time of which a journal is incomplete."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Losses:
    """How many rows are missing in all."""

    operations: int = 0
    checks: int = 0


@dataclass(slots=True)
class Gap:
    """So many rows that were recorded between two moments, in the loop's seconds, are missing."""

    began: float
    ended: float
    operations: int = 0
    checks: int = 0

    def __or__(self, other: Gap | None) -> Gap:
        """The one gap that these two make: it takes in the time between them."""
        if other is None:
            return self
        return Gap(
            began=min(self.began, other.began),
            ended=max(self.ended, other.ended),
            operations=self.operations + other.operations,
            checks=self.checks + other.checks,
        )
