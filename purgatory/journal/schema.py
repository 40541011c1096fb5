"""What a journal records, with its units: the one definition, for who writes it and for who reads it.

A journal is a directory with a subdirectory for each of three tables, which hold Parquet files ("segments").
Whole ones end in ``.parquet``; what is still being written begins with a dot.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

SCHEMA_VERSION: Final = 1
# The key of the version in a segment's metadata.
VERSION_KEY: Final = b"purgatory.journal.version"

OPERATIONS: Final = "operations"
CHECKS: Final = "checks"
GAPS: Final = "gaps"

# How an operation ended, as in OperationState.
OUTCOMES: Final = ("completed", "expired", "cancelled", "failed")

_INSTANT: Final = pa.timestamp("us", tz="UTC")
_METADATA: Final = {VERSION_KEY: str(SCHEMA_VERSION).encode()}

OPERATIONS_SCHEMA: Final = pa.schema(
    [
        # Who wrote it, by the name given to the writer.
        pa.field("node", pa.string(), nullable=False),
        pa.field("purgatory", pa.string(), nullable=False),
        # Of this operation alone within the node, in all purgatories, also when it is started again. Those of
        # one writer ascend as the operations ended; from one writer to the next they jump.
        pa.field("operation_id", pa.int64(), nullable=False),
        # The name of the operation's class.
        pa.field("kind", pa.string(), nullable=False),
        pa.field("keys", pa.list_(pa.field("element", pa.string(), nullable=False)), nullable=False),
        # When it was offered.
        pa.field("started", _INSTANT, nullable=False),
        # Microseconds. The latest timeout given, null when it never expires, 0 when it was only tried.
        pa.field("timeout_us", pa.int64(), nullable=True),
        # Microseconds from its offer to its end. An expired one may have waited for less than its timeout,
        # since closing a purgatory expires what is pending, or for more, if it was rescheduled.
        pa.field("waited_us", pa.int64(), nullable=False),
        # Microseconds from its deadline to its end; null unless that is why it ended.
        pa.field("lateness_us", pa.int64(), nullable=True),
        # One of OUTCOMES.
        pa.field("outcome", pa.string(), nullable=False),
        # How often its condition was looked at, the first time included.
        pa.field("tries", pa.int32(), nullable=False),
    ],
    metadata=_METADATA,
)

CHECKS_SCHEMA: Final = pa.schema(
    [
        pa.field("node", pa.string(), nullable=False),
        pa.field("purgatory", pa.string(), nullable=False),
        pa.field("key", pa.string(), nullable=False),
        pa.field("checked", _INSTANT, nullable=False),
        # How many operations that watch the key were tried, and how many of these completed.
        pa.field("tried", pa.int32(), nullable=False),
        pa.field("completed", pa.int32(), nullable=False),
    ],
    metadata=_METADATA,
)

# Between these two moments so many rows were not recorded: quiet there is no quiet.
GAPS_SCHEMA: Final = pa.schema(
    [
        pa.field("node", pa.string(), nullable=False),
        pa.field("began", _INSTANT, nullable=False),
        pa.field("ended", _INSTANT, nullable=False),
        pa.field("lost_operations", pa.int64(), nullable=False),
        pa.field("lost_checks", pa.int64(), nullable=False),
    ],
    metadata=_METADATA,
)

SCHEMAS: Final = {OPERATIONS: OPERATIONS_SCHEMA, CHECKS: CHECKS_SCHEMA, GAPS: GAPS_SCHEMA}
