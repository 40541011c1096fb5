"""A gap: a time of which rows of a journal are missing."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Losses:
    """How many rows of each table are missing in all."""

    operations: int = 0
    checks: int = 0


@dataclass(slots=True)
class Gap:
    """How many rows are missing that were recorded between two times, in the loop's seconds."""

    began: float
    ended: float
    operations: int = 0
    checks: int = 0

    def __or__(self, other: Gap | None) -> Gap:
        """One gap for both. It includes the time between them."""
        if other is None:
            return self
        return Gap(
            began=min(self.began, other.began),
            ended=max(self.ended, other.ended),
            operations=self.operations + other.operations,
            checks=self.checks + other.checks,
        )
