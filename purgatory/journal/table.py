"""A table of a journal: its rows as the event loop records them, and the columns that are made of them.

Recording takes time of the event loop. So the values of rows lie end to end in one flat list. It takes one
call to record a row, and the call creates no object that is kept. The writer's thread does all computation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, Generic, TypeVar, cast

import pyarrow as pa

from purgatory import __version__

# The version of the format. It is raised when older versions of purgatory could no longer read a segment, or
# would misread it. A new column does not raise it: older versions leave the column out.
SCHEMA_VERSION: Final = 1
# The keys in a segment's metadata: the version of the format, and the version of purgatory that wrote it.
VERSION_KEY: Final = b"purgatory.journal.version"
WRITER_KEY: Final = b"purgatory.version"

# A named tuple that has a list for each value that is recorded.
Recorded = TypeVar("Recorded", bound=tuple[Any, ...])


class RecordedRows(list[Any]):
    """The values of the rows that wait for the next batch, end to end. All rows belong to one table.

    This is a list, so that the event loop adds a row with one call.
    """

    __slots__ = ("check_at", "full_at", "width")

    def __init__(self, width: int, max_rows: int) -> None:
        self.width = width
        # The length of the list when it has `max_rows` rows.
        self.full_at = width * max_rows
        # From this length on, the writer has more to do than to record a row: with the first row of
        # a batch, and with the row that fills the batch.
        self.check_at = 0

    @property
    def rows(self) -> int:
        return len(self) // self.width


@dataclass(frozen=True, slots=True)
class ConsecutiveRows(Generic[Recorded]):
    """Consecutive rows of one table, with what all rows of a writer have in common."""

    recorded: Recorded
    rows: int
    # The number of the first row, counted from the writer's first row of the table.
    first: int
    # A random number of 31 bits for each writer.
    run: int
    node: str
    # The loop's time 0, in seconds since 1970.
    epoch: float


@dataclass(frozen=True, slots=True)
class Column(Generic[Recorded]):
    """A column of a table: its name and type, and how its values are made of recorded values."""

    name: str
    type: pa.DataType
    values: Callable[[ConsecutiveRows[Recorded]], pa.Array]
    nullable: bool = False
    # Whether the column has few distinct values. Then Parquet encodes the values by a dictionary. For values
    # that seldom repeat, a dictionary would take twice the time, and more room.
    repeats: bool = False
    # Whether it came after the first version: older segments lack it, and its values are null there.
    later: bool = False


@dataclass(frozen=True)
class RecordedTable(Generic[Recorded]):
    """A table of a journal. Its rows are recorded as values that lie end to end in one flat list."""

    name: str
    recorded: type[Recorded]
    # The times of rows in the loop's seconds, ascending.
    times: Callable[[Recorded], Sequence[float]]
    columns: Sequence[Column[Recorded]]

    @cached_property
    def values(self) -> tuple[str, ...]:
        """The names of the values that are recorded for each row."""
        return cast(tuple[str, ...], cast(Any, self.recorded)._fields)

    @cached_property
    def width(self) -> int:
        """How many values are recorded for each row."""
        return len(self.values)

    @cached_property
    def schema(self) -> pa.Schema:
        fields = [
            pa.field(column.name, column.type, nullable=column.nullable or column.later)
            for column in self.columns
        ]
        metadata = {VERSION_KEY: str(SCHEMA_VERSION).encode(), WRITER_KEY: __version__.encode()}
        return pa.schema(fields, metadata=metadata)

    @cached_property
    def later_columns(self) -> frozenset[str]:
        """The names of the columns that older segments lack."""
        return frozenset(column.name for column in self.columns if column.later)

    @cached_property
    def dictionary_columns(self) -> list[str]:
        return [column.name for column in self.columns if column.repeats]

    def split(self, flat: list[Any]) -> Recorded:
        """One list for each recorded value."""
        return self.recorded._make(flat[position :: self.width] for position in range(self.width))  # type: ignore[attr-defined,no-any-return]  # a named tuple

    def span(self, flat: list[Any]) -> tuple[float, float]:
        """The times of the first and the last row, in the loop's seconds."""
        first, last = (self.times(self.split(row)) for row in (flat[: self.width], flat[-self.width :]))
        return first[0], last[0]
