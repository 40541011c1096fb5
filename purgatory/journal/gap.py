"""A gap: an interval of time in which rows of a journal are missing."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Losses:
    """The total number of rows that are missing in each table."""

    operations: int = 0
    checks: int = 0


@dataclass(slots=True)
class Gap:
    """The number of rows that are missing between two times. The times are in the loop's seconds."""

    began: float
    ended: float
    operations: int = 0
    checks: int = 0

    def __or__(self, other: Gap | None) -> Gap:
        """One gap in place of two gaps. It includes the time between them."""
        if other is None:
            return self
        return Gap(
            began=min(self.began, other.began),
            ended=max(self.ended, other.ended),
            operations=self.operations + other.operations,
            checks=self.checks + other.checks,
        )
