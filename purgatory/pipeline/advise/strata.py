"""Strata: groups of operations that are analysed separately: the kinds, and the hot keys of each kind."""

from __future__ import annotations

from functools import partial
from typing import Final

import pyarrow as pa

from purgatory.journal.schema import OPERATIONS
from purgatory.pipeline.exchange import Part, columns
from purgatory.pipeline.sql import select

# The columns that tell a stratum from others. The key is null for a whole kind.
STRATUM: Final = ("purgatory", "kind", "key")

# Each operation, once for each stratum that it belongs to: its kind, and its hot keys.
STRATIFIED: Final = """
SELECT *, NULL::VARCHAR AS key FROM rows
UNION ALL
SELECT * FROM (SELECT *, unnest(list_distinct(keys)) AS key FROM rows) SEMI JOIN hot USING (purgatory, key)
"""
_COUNTED: Final = f"""
SELECT purgatory, kind, key, timeout_us, count(*) AS operations FROM ({STRATIFIED}) GROUP BY ALL
"""
_FREQUENT: Final = """
SELECT purgatory, kind, key, timeout_us, total(operations) AS operations,
    row_number() OVER (
        PARTITION BY purgatory, kind, key ORDER BY total(operations) DESC, timeout_us DESC NULLS FIRST
    ) AS rank
FROM rows GROUP BY purgatory, kind, key, timeout_us
QUALIFY rank <= {up_to}
"""


def present_timeouts(hot: pa.Table, *, up_to: int) -> Part:
    """The most frequent timeouts of each stratum, ranked from 1, with the number of their ``operations``.

    `hot` has the hot keys: ``purgatory`` and ``key``. Timeouts are null for operations that never expire. If
    timeouts are equally frequent, the longest timeout comes first.
    """
    return Part(
        "present_timeouts",
        OPERATIONS,
        columns(OPERATIONS, "purgatory", "kind", "keys", "timeout_us"),
        partial(select, _COUNTED, hot=hot),
        group=STRATUM,
        merge=partial(select, _FREQUENT.format(up_to=up_to)),
    )
