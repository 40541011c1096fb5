"""The keys with the most operations, waiting time, and wasted tries."""

from __future__ import annotations

from functools import partial
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from purgatory.journal.schema import COMPLETED, OPERATIONS
from purgatory.pipeline.exchange import Part

# For each key: its operations, the time that its operations waited, and the tries that completed no
# operation.
MEASURES: Final = ("operations", "waited_us", "wasted_tries")
_KEY: Final = ("purgatory", "key")


def hottest_keys(*, up_to: int) -> Part:
    """The measures of each key that may be among the `up_to` hottest keys of its purgatory by a measure.

    An operation counts in full for each of its keys.
    """
    return Part(
        "hottest_keys",
        OPERATIONS,
        ("purgatory", "keys", "waited_us", "tries", "outcome"),
        _counted,
        group=_KEY,
        merge=partial(_candidates, up_to),
    )


def ranked(keys: pa.Table, *, up_to: int) -> pa.Table:
    """The keys with the highest values of each measure (``by``) in each purgatory, ranked from 1.

    Ties are ranked by the name of the key. A key with a value of 0 is not ranked.
    """
    return pa.concat_tables(_ranked_by(measure, keys, up_to) for measure in MEASURES)


def _ranked_by(measure: str, keys: pa.Table, up_to: int) -> pa.Table:
    order = [("purgatory", "ascending"), (measure, "descending"), ("key", "ascending")]
    rows = keys.filter(pc.greater(keys[measure], 0)).sort_by(order)
    purgatory = rows["purgatory"].combine_chunks().dictionary_encode().indices.to_numpy()
    rank = 1 + np.arange(len(purgatory)) - np.searchsorted(purgatory, purgatory)
    named = rows.append_column("by", pa.repeat(measure, len(rank))).append_column("rank", pa.array(rank))
    return named.filter(pa.array(rank <= up_to))


def _candidates(up_to: int, counted: pa.Table) -> pa.Table:
    """The keys that may be among the hottest keys. No other worker has these keys."""
    keys = _summed(counted)
    return ranked(keys, up_to=up_to).group_by([*_KEY, *MEASURES], use_threads=False).aggregate([])


def _counted(operations: pa.Table) -> pa.Table:
    """The measures of each key of the operations."""
    keys = operations["keys"].combine_chunks()
    pairs = pa.table({"operation": pc.list_parent_indices(keys), "key": pc.list_flatten(keys)})
    if (pc.max(pc.list_value_length(keys)).as_py() or 0) > 1:
        # If an operation has a key twice, the key counts once.
        pairs = pairs.group_by(["operation", "key"], use_threads=False).aggregate([])
    completed = pc.equal(operations["outcome"], COMPLETED).cast(pa.int32())
    wasted = pc.subtract(operations["tries"], completed)
    of_operation = pairs["operation"]
    return _summed(
        pa.table(
            {
                "purgatory": operations["purgatory"].take(of_operation),
                "key": pairs["key"],
                "operations": pa.repeat(pa.scalar(1, pa.int64()), pairs.num_rows),
                "waited_us": operations["waited_us"].take(of_operation),
                "wasted_tries": wasted.take(of_operation),
            }
        )
    )


def _summed(counted: pa.Table) -> pa.Table:
    """The sum of each measure of each key."""
    sums = counted.group_by(_KEY, use_threads=False).aggregate([(measure, "sum") for measure in MEASURES])
    return sums.select([*_KEY, *(f"{measure}_sum" for measure in MEASURES)]).rename_columns(
        [*_KEY, *MEASURES]
    )
