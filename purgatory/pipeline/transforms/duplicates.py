"""Finds rows that are duplicates of other rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from purgatory.journal.schema import SCHEMAS
from purgatory.pipeline.exchange import Part, gather, rows_of
from purgatory.pipeline.schemas import Table
from purgatory.pipeline.spark import Spark
from purgatory.pipeline.sql import DAY_US, select
from purgatory.pipeline.transforms.segments import content_of, rows_in
from purgatory.pipeline.transforms.validation import reasons

# Positions of rows in a segment.
Positions = NDArray[np.int64]

_COUNTED: Final = "SELECT count(*) AS rows, count(DISTINCT hash) AS identities FROM rows"
_COPIES: Final = """
SELECT segment, position FROM rows
QUALIFY row_number() OVER (PARTITION BY {identity} ORDER BY segment, position) > 1
"""


def identities(spark: Spark, table: Table, paths: Sequence[str]) -> tuple[int, int]:
    """The number of rows in these files of a table, and the number of their identities.

    Counts hashes of 64 bits instead of the identities. So if the numbers are equal, there are no duplicates.
    If they differ, there are duplicates, except in one of 360,000 cases with ten million rows.
    """
    query = f"SELECT hash({', '.join(table.identity)}) AS hash FROM ({_dated(table)})"
    part = Part(
        table.name,
        table.name,
        _columns(table),
        partial(select, query),
        group=("hash",),
        merge=partial(select, _COUNTED),
    )
    counts = gather(spark, {table.name: paths}, [part])[table.name]
    return pc.sum(counts["rows"]).as_py(), pc.sum(counts["identities"]).as_py()


def duplicates(
    spark: Spark, table: Table, segments: Sequence[str], known: Sequence[str]
) -> Mapping[str, Positions]:
    """The positions of the duplicates in each of these segments.

    A row is a duplicate if its identity is in one of the `known` files of the table, or if another row with
    its identity comes before it by path and position. The identities in the known files are distinct.
    """
    numbered = dict(enumerate(sorted(segments)))
    part = Part(
        table.name,
        table.name,
        _columns(table).append(pa.field("segment", pa.int64())).append(pa.field("position", pa.int64())),
        partial(select, _dated(table)),
        group=table.identity,
        merge=partial(select, _COPIES.format(identity=", ".join(table.identity))),
    )
    numbers = {path: number for number, path in numbered.items()}
    files = {table.name: [*segments, *known]}
    found = gather(spark, files, [part], partial(placed, table, numbers))[table.name]
    by_segment = select("SELECT segment, list(position) AS positions FROM rows GROUP BY ALL", found)
    return {numbered[row["segment"]]: np.array(row["positions"]) for row in by_segment.to_pylist()}


def placed(table: Table, numbers: Mapping[str, int], path: str, columns: Sequence[str]) -> Iterator[pa.Table]:
    """The valid rows of a segment with their places, or the rows of another file before all segments.

    This function runs in the workers.
    """
    number = numbers.get(path)
    if number is None:
        for rows in rows_of(path, [name for name in columns if name not in ("segment", "position")]):
            yield _with_places(rows, -1, np.arange(rows.num_rows))
    else:
        rows = rows_in(content_of(path), table)
        positions = np.flatnonzero(pc.is_null(reasons(rows, table)).to_numpy())
        yield _with_places(rows.take(pa.array(positions)), number, positions)


def _with_places(rows: pa.Table, segment: int, positions: Positions) -> pa.Table:
    places = {"segment": np.full(rows.num_rows, segment), "position": positions}
    for name, values in places.items():
        rows = rows.append_column(name, pa.array(values))
    return rows


def _columns(table: Table) -> pa.Schema:
    """The columns that identify a row. The date is made of the instant."""
    names = (table.instant, *(name for name in table.identity if name != "date"))
    return pa.schema([SCHEMAS[table.name].field(name) for name in names])


def _dated(table: Table) -> str:
    return f"SELECT * EXCLUDE ({table.instant}), epoch_us({table.instant}) // {DAY_US} AS date FROM rows"
