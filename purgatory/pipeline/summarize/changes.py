"""The changes of the number of pending operations, exact to the microsecond."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema

from purgatory.pipeline.summarize.condensation import Part
from purgatory.pipeline.transforms.instants import MINUTE_US, ended_us, started_us

_SERIES: Final = ("purgatory", "kind")
_GROUP: Final = (*_SERIES, "minute_us")

# A change is a number: twice the microseconds since its minute began, and 1 more if an operation began. So
# numbers are in the order of time, and at one instant operations end before others begin.
# It has so many bits.
_BITS: Final = 27

Integers = NDArray[np.int64]


def _packed(operations: pa.Table) -> pa.Table:
    """The changes in each minute, packed."""
    began = started_us(operations)
    at = np.concatenate([began, ended_us(operations)])
    minute = at - at % MINUTE_US
    change = 2 * (at - minute)
    change[: len(began)] += 1
    series = pa.concat_tables([operations.select(_SERIES)] * 2)
    groups, group = _grouped(series.append_column("minute_us", pa.array(minute)))
    # The number of a group leaves room for that of a change: there are no more groups than rows.
    packed = np.sort(group << _BITS | change)
    lengths = np.bincount(group, minlength=groups.num_rows)
    changes = pa.ListArray.from_arrays(
        pa.array(np.append(0, np.cumsum(lengths)).astype(np.int32)),
        pa.array((packed & (1 << _BITS) - 1).astype(np.int32)),
    )
    return groups.append_column("changes", changes)


CHANGES: Final = Part(
    "changes",
    (*_SERIES, "started", "waited_us"),
    pa.schema(
        [
            ("purgatory", pa.string()),
            ("kind", pa.string()),
            ("minute_us", pa.int64()),
            ("changes", pa.list_(pa.int32())),
        ]
    ),
    _packed,
)

_BY_MINUTE: Final = pa.schema(
    [
        ("purgatory", pa.string()),
        ("kind", pa.string()),
        ("minute_us", pa.int64()),
        ("first_us", pa.int64()),
        ("last_us", pa.int64()),
        ("net", pa.int64()),
        ("most", pa.int64()),
        ("area_us", pa.int64()),
    ]
)


def changes(packed: DataFrame) -> DataFrame:
    """How the number of pending operations changed in each minute, from the part `CHANGES`.

    One row for each purgatory, kind and minute in which an operation began or ended: the instants of the
    first change, ``first_us``, and the last, ``last_us``; the ``net`` change; ``most``, the highest sum of
    changes since the minute began; and ``area_us``, the sum of changes, each times the rest of the minute.

    A task keeps four bytes for each change in its minutes.
    """
    return packed.repartition(*_GROUP).mapInArrow(sweep, from_arrow_schema(_BY_MINUTE))


def sweep(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The part of `changes` that runs in the workers, with all packed changes of its minutes."""
    received = list(batches)
    if not received:
        return
    packed = pa.Table.from_batches(received)
    groups, group = _grouped(packed.select(_GROUP))
    lists = packed["changes"].combine_chunks()
    merged = np.sort(
        np.repeat(group, pc.list_value_length(lists).to_numpy()) << _BITS
        | pc.list_flatten(lists).to_numpy().astype(np.int64)
    )
    group, change = merged >> _BITS, merged & (1 << _BITS) - 1
    offset, sign = change >> 1, 2 * (change & 1) - 1
    last_at_instant = np.append(np.diff(merged >> 1) > 0, True)
    (first,) = np.nonzero(np.diff(group, prepend=-1))
    last = np.append(first[1:], len(group)) - 1
    sums = np.cumsum(sign)
    # Minutes follow each other here, but the sum begins anew in each.
    sums -= (sums[first] - sign[first])[group]
    minute = groups["minute_us"].to_numpy()
    yield from pa.table(
        {
            **{name: groups[name] for name in _GROUP},
            "first_us": minute + offset[first],
            "last_us": minute + offset[last],
            "net": sums[last],
            "most": np.maximum.reduceat(np.where(last_at_instant, sums, np.iinfo(np.int64).min), first),
            "area_us": np.add.reduceat(sign * (MINUTE_US - offset), first),
        },
        _BY_MINUTE,
    ).to_batches()


def _grouped(rows: pa.Table) -> tuple[pa.Table, Integers]:
    """The distinct rows (purgatory, kind, minute_us), and for each row the number of its distinct one."""
    number = np.zeros(rows.num_rows, np.int64)
    for name in _GROUP:
        column = rows[name].combine_chunks().dictionary_encode()
        code = number * len(column.dictionary) + column.indices.to_numpy()
        distinct = np.unique(code)
        number = np.searchsorted(distinct, code)
    # Any row is an example of its group.
    examples = np.empty(len(distinct), np.int64)
    examples[number] = np.arange(rows.num_rows)
    return rows.take(pa.array(examples)), number
