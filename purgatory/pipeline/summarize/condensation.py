"""Condenses operations: one pass over them leaves few rows, of which several summaries are made.

The pass runs in the workers, with Arrow. A task condenses its operations in chunks, so what it leaves is to
be aggregated once more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

# Operations that are condensed at a time.
_CHUNK: Final = 1 << 17


@dataclass(frozen=True, slots=True)
class Part:
    """What one summary needs of operations."""

    # The name of a column with structs.
    name: str
    # The columns of the operations that it reads.
    reads: tuple[str, ...]
    # The fields of the structs.
    fields: pa.Schema
    # Makes rows with these fields of some operations.
    condense: Callable[[pa.Table], pa.Table]

    def of(self, condensed: DataFrame) -> DataFrame:
        """The rows of this part."""
        return condensed.where(F.col(self.name).isNotNull()).select(f"{self.name}.*")


def condensed(operations: DataFrame, *parts: Part) -> DataFrame:
    """A column for each part. A row is of one part; its other columns are null."""
    reads = sorted({name for part in parts for name in part.reads})
    return operations.select(reads).mapInArrow(partial(condense, parts), from_arrow_schema(_schema(parts)))


def condense(parts: Sequence[Part], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The part of `condensed` that runs in the workers."""
    schema = _schema(parts)
    for chunk in _chunks(batches):
        for part in parts:
            rows = part.condense(chunk).select(part.fields.names).cast(part.fields).combine_chunks()
            for batch in rows.to_batches():
                own = pa.StructArray.from_arrays(batch.columns, fields=list(part.fields))
                columns = [
                    own if each.name == part.name else pa.nulls(len(own), each.type) for each in schema
                ]
                yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _chunks(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.Table]:
    """The rows, `_CHUNK` at a time."""
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        waiting.append(batch)
        rows += batch.num_rows
        if rows >= _CHUNK:
            yield from _slices(waiting)
            waiting, rows = [], 0
    if rows:
        yield from _slices(waiting)


def _slices(batches: Sequence[pa.RecordBatch]) -> Iterator[pa.Table]:
    rows = pa.Table.from_batches(batches)
    for first in range(0, rows.num_rows, _CHUNK):
        yield rows.slice(first, _CHUNK).combine_chunks()


def _schema(parts: Sequence[Part]) -> pa.Schema:
    return pa.schema([(part.name, pa.struct(list(part.fields))) for part in parts])
