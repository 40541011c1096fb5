"""The changes of the number of pending operations, exact to the microsecond."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from purgatory.journal.schema import OPERATIONS
from purgatory.pipeline.exchange import Part
from purgatory.pipeline.summarize.groups import Groups
from purgatory.pipeline.transforms.instants import MINUTE_US, ended_us, started_us

_SERIES: Final = ("purgatory", "kind")
_GROUP: Final = (*_SERIES, "minute_us")

# A change is a number: twice the microseconds since its minute began, and 1 more if an operation began. So
# the order of the numbers is the order of time. At one instant, ends come before beginnings. A change has
# this many bits.
_BITS: Final = 27


def _packed(operations: pa.Table) -> pa.Table:
    """The changes in each minute, packed."""
    began = started_us(operations)
    at = np.concatenate([began, ended_us(operations)])
    minute = at - at % MINUTE_US
    change = 2 * (at - minute)
    change[: len(began)] += 1
    series = pa.concat_tables([operations.select(_SERIES)] * 2)
    groups = Groups(series.append_column("minute_us", pa.array(minute)), _GROUP)
    # The number of a group and a change fit into one integer, because there are no more groups than rows.
    packed = np.sort(groups.number << _BITS | change)
    lengths = np.bincount(groups.number, minlength=len(groups))
    changes = pa.ListArray.from_arrays(
        pa.array(np.append(0, np.cumsum(lengths)).astype(np.int32)),
        pa.array((packed & (1 << _BITS) - 1).astype(np.int32)),
    )
    return groups.rows.append_column("changes", changes)


def _swept(packed: pa.Table) -> pa.Table:
    """The sums of all changes of a minute. A change takes eight bytes of memory."""
    groups = Groups(packed, _GROUP)
    lists = packed["changes"].combine_chunks()
    merged = np.sort(
        np.repeat(groups.number, pc.list_value_length(lists).to_numpy()) << _BITS
        | pc.list_flatten(lists).to_numpy().astype(np.int64)
    )
    group, change = merged >> _BITS, merged & (1 << _BITS) - 1
    offset, sign = change >> 1, 2 * (change & 1) - 1
    last_at_instant = np.append(np.diff(merged >> 1), 1)[: len(merged)] > 0
    (first,) = np.nonzero(np.diff(group, prepend=-1))
    last = np.append(first[1:], len(group))[: len(first)] - 1
    sums = np.cumsum(sign)
    # The minutes follow each other here, but the sum of each minute begins with 0.
    sums -= (sums[first] - sign[first])[group]
    minute = groups.rows["minute_us"].to_numpy()
    measures = {
        "first_us": minute + offset[first],
        "last_us": minute + offset[last],
        "net": sums[last],
        "most": np.maximum.reduceat(np.where(last_at_instant, sums, np.iinfo(np.int64).min), first),
        "area_us": np.add.reduceat(sign * (MINUTE_US - offset), first),
    }
    return pa.table({**{name: groups.rows[name] for name in _GROUP}, **measures})


# How the number of pending operations changed in each minute. There is one row for each purgatory, kind and
# minute in which an operation began or ended. ``first_us`` and ``last_us`` are the instants of the first and
# the last change. ``net`` is the sum of the changes. ``most`` is the highest sum of changes since the minute
# began. ``area_us`` is the sum of the changes, each multiplied by the rest of the minute.
CHANGES: Final = Part(
    "changes", OPERATIONS, (*_SERIES, "started", "waited_us"), _packed, group=_GROUP, merge=_swept
)
