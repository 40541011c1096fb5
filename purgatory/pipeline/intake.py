"""Takes segments into a dataset: workers read them, and write their rows to files that are in no commit yet.

The rows do not pass through Java: Arrow reads, checks, sorts and writes them by columns.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from purgatory.pipeline.dataset import Dataset
from purgatory.pipeline.delta import DataFile
from purgatory.pipeline.listing import digest_of, text_of
from purgatory.pipeline.schemas import Table
from purgatory.pipeline.transforms.duplicates import Positions
from purgatory.pipeline.transforms.segments import UnreadableError, content_of, rows_in
from purgatory.pipeline.transforms.validation import reasons

# In bytes of memory. A worker writes its rows when they take more than this.
_WRITE_SIZE: Final = 256 << 20


@dataclass(frozen=True, slots=True)
class ReadSegment:
    """The counts of a segment that was read: rows = kept + duplicates + refused."""

    path: str
    # Why the segment could not be read, and so has no rows and no digest. None if it could be read.
    problem: str | None = None
    digest: str | None = None
    # Whether the segment has the bytes of a file that was read. Then all its rows are duplicates.
    copy: bool = False
    kept: int = 0
    duplicates: int = 0
    # The number of rows that were refused, by reason.
    refused: Mapping[str, int] = field(default_factory=dict)

    @property
    def quarantined(self) -> int:
        return sum(self.refused.values())

    @property
    def rows(self) -> int | None:
        return None if self.problem else self.kept + self.duplicates + self.quarantined


@dataclass(frozen=True, slots=True)
class Counts:
    """The counts of segments and of their rows: rows = kept + duplicates + quarantined."""

    files: int = 0
    # The files that could not be read. The number of their rows is unknown, and is not in `rows`.
    unreadable_files: int = 0
    rows: int = 0
    kept: int = 0
    duplicates: int = 0
    quarantined: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(*map(sum, zip(astuple(self), astuple(other), strict=True)))

    @classmethod
    def of(cls, segments: Iterable[ReadSegment]) -> Counts:
        every = [
            cls(1, each.problem is not None, each.rows or 0, each.kept, each.duplicates, each.quarantined)
            for each in segments
        ]
        return sum(every, start=cls())


@dataclass(frozen=True, slots=True)
class Intake:
    """Segments that were read, and the files with their rows."""

    segments: Sequence[ReadSegment]
    rows: Sequence[DataFile]
    quarantine: Sequence[DataFile]

    def __add__(self, other: Intake) -> Intake:
        return Intake(
            [*self.segments, *other.segments],
            [*self.rows, *other.rows],
            [*self.quarantine, *other.quarantine],
        )


def take_in(
    dataset: Dataset,
    table: Table,
    batch: int,
    read: Mapping[str, int],
    drop: Mapping[str, Positions],
    paths: Iterable[str],
) -> Iterator[Intake]:
    """Read the segments, and write their rows. This function runs in the workers.

    `read` has the number of rows of files that were read, by digest. A segment with such a digest is a copy,
    and its rows are not written. `drop` has the positions of the
    duplicates in each path. Duplicates are not written. A refused row goes to the quarantine, with the number
    of this `batch`. The root of the dataset must be an absolute path, because a worker has a working
    directory of its own.
    """
    segments: list[ReadSegment] = []
    kept: list[pa.Table] = []
    refused: list[pa.Table] = []

    def write() -> Intake:
        rows = dataset.table(table).write_table(_in_order(kept, table)) if kept else []
        quarantine = dataset.quarantine.write_table(pa.concat_tables(refused)) if refused else []
        intake = Intake(list(segments), rows, quarantine)
        for waiting in (segments, kept, refused):
            waiting.clear()
        return intake

    for path in paths:
        try:
            content = content_of(path)
            digest = digest_of(content)
            if digest in read:
                segments.append(ReadSegment(path, digest=digest, copy=True, duplicates=read[digest]))
                continue
            rows = rows_in(content, table)
        except UnreadableError as error:
            segments.append(ReadSegment(path, problem=str(error)))
            continue
        why = reasons(rows, table)
        keep = pc.is_null(why).to_numpy().copy()
        valid = int(keep.sum())
        keep[drop.get(path, [])] = False
        kept.append(rows.filter(pa.array(keep)))
        counts = {each["values"]: each["counts"] for each in pc.value_counts(why.drop_null()).to_pylist()}
        if counts:
            refused.append(_quarantined(text_of(path), rows, why, table, batch))
        new = kept[-1].num_rows
        segments.append(ReadSegment(path, digest=digest, kept=new, duplicates=valid - new, refused=counts))
        if sum(each.nbytes for each in kept) > _WRITE_SIZE:
            yield write()
    yield write()


def _in_order(parts: Sequence[pa.Table], table: Table) -> pa.Table:
    rows = pa.concat_tables(parts).combine_chunks()
    return rows.sort_by([(name, "ascending") for name in table.order_by])


def _quarantined(source: str, rows: pa.Table, why: pa.ChunkedArray, table: Table, batch: int) -> pa.Table:
    """The refused rows, with the columns of schemas.QUARANTINE."""
    positions = np.flatnonzero(pc.is_valid(why).to_numpy())
    refused = rows.take(pa.array(positions))
    return pa.table(
        {
            "source": pa.repeat(source, len(positions)),
            "position": positions,
            "reason": why.drop_null(),
            "row": list(map(_as_json, _printable(refused).to_pylist())),
            "table": pa.repeat(table.name, len(positions)),
            "batch": pa.repeat(pa.scalar(batch, pa.int64()), len(positions)),
        }
    )


def _printable(rows: pa.Table) -> pa.Table:
    """The rows, with instants as text: Python has no instants outside of the years from 1 to 9999."""
    instants = [field for field in rows.schema if pa.types.is_timestamp(field.type)]
    for instant in instants:
        text = rows[instant.name].cast(pa.string())
        rows = rows.set_column(rows.schema.get_field_index(instant.name), instant.name, text)
    return rows


def _as_json(row: Mapping[str, Any]) -> str:
    return json.dumps(row, ensure_ascii=False)
