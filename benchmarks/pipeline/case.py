"""The journals that are measured, and what is the same for all that is done with them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

# What Spark has, and DuckDB.
THREADS: Final = 2
# So many keys of each purgatory are listed by each measure.
HOTTEST: Final = 20


# More operations take longer, as they do in a journal that grows: ten million are those of an hour.
_PER_SECOND: Final = 10_000_000 / 3600


@dataclass(frozen=True, slots=True)
class Case:
    """A journal of so many operations, whose keys are all as likely, but that one of them has a share."""

    operations: int
    hot: float = 0.0

    @property
    def seconds(self) -> float:
        """From the first start to the last."""
        return self.operations / _PER_SECOND

    def __str__(self) -> str:
        return f"{self.operations:,}" + (f", one key has {self.hot:.0%}" if self.hot else "")
