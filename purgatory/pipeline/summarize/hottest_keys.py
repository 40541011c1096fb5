"""The keys with the most operations, waiting time, and wasted tries."""

from __future__ import annotations

from functools import partial
from typing import Final

import pyarrow as pa

from purgatory.journal.schema import OPERATIONS
from purgatory.pipeline.exchange import Part, columns
from purgatory.pipeline.sql import select

# For each key: its operations, the time that its operations waited, and the tries that completed no
# operation. If an operation has a key twice, the key counts once.
_COUNTED: Final = """
SELECT purgatory, key, count(*) AS operations, total(waited_us) AS waited_us,
    total(tries - (outcome = 'completed')::INTEGER) AS wasted_tries
FROM (
    SELECT * EXCLUDE (keys), unnest(if(len(keys) > 1, list_distinct(keys), keys)) AS key FROM rows
)
GROUP BY ALL
"""
_SUMMED: Final = """
SELECT purgatory, key, total(operations) AS operations, total(waited_us) AS waited_us,
    total(wasted_tries) AS wasted_tries
FROM rows GROUP BY ALL
"""
_RANKED: Final = """
SELECT purgatory, "by", row_number() OVER ranking AS rank, key, operations, waited_us, wasted_tries
FROM (
    SELECT
        *,
        unnest(['operations', 'waited_us', 'wasted_tries']) AS "by",
        unnest([operations, waited_us, wasted_tries]) AS amount
    FROM ({keys})
)
WHERE amount > 0
WINDOW ranking AS (PARTITION BY purgatory, "by" ORDER BY amount DESC, key)
QUALIFY rank <= {up_to}
"""


def hottest_keys(*, up_to: int) -> Part:
    """The measures of each key that may be among the `up_to` hottest keys of its purgatory by a measure.

    An operation counts in full for each of its keys.
    """
    # No other worker has the keys of this worker.
    candidates = _RANKED.format(keys=_SUMMED, up_to=up_to)
    return Part(
        "hottest_keys",
        OPERATIONS,
        columns(OPERATIONS, "purgatory", "keys", "waited_us", "tries", "outcome"),
        partial(select, _COUNTED),
        group=("purgatory", "key"),
        merge=partial(select, f'SELECT DISTINCT * EXCLUDE ("by", rank) FROM ({candidates})'),
    )


def ranked(keys: pa.Table, *, up_to: int) -> pa.Table:
    """The keys with the highest values of each measure (``by``) in each purgatory, ranked from 1.

    Ties are ranked by the name of the key. A key with a value of 0 is not ranked.
    """
    return select(_RANKED.format(keys="SELECT * FROM rows", up_to=up_to), keys)
