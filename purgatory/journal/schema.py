"""The tables of a journal. Each column is declared once: name, type, unit, and where its value comes from.

A journal is a directory with one subdirectory for each of the three tables. A subdirectory holds Parquet
files, called segments. The name of a complete segment ends in ``.parquet``; the name of a file that is still
being written begins with a dot.

To add a column, add a `Column` with ``later=True`` to its table below. If the event loop does not record its
value yet, also add the value to `record_operation` and its name to `FinishedOperations`. docs/journal.md
explains every column.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final, NamedTuple, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from purgatory import DelayedOperation, OperationState
from purgatory.journal.arrays import (
    INSTANT,
    TEXTS,
    instants,
    microseconds,
    seconds,
    text_lists,
    texts,
    timeouts,
)
from purgatory.journal.table import Column, ConsecutiveRows, RecordedRows, RecordedTable
from purgatory.observer import Timing, ended

OPERATIONS: Final = "operations"
CHECKS: Final = "checks"
GAPS: Final = "gaps"

COMPLETED: Final[str] = OperationState.COMPLETED.value
EXPIRED: Final[str] = OperationState.EXPIRED.value
CANCELLED: Final[str] = OperationState.CANCELLED.value
FAILED: Final[str] = OperationState.FAILED.value


class FinishedOperations(NamedTuple):
    """What the event loop records of finished operations: one list for each value in `record_operation`."""

    purgatory: list[str]
    kind: list[type]
    timing: list[Timing]
    keys: list[tuple[Hashable, ...]]
    state: list[OperationState]
    # In seconds; inf if the operation never expires.
    timeout: list[float]
    # In the loop's seconds; inf if the operation never expires.
    deadline: list[float]


class _Writer(Protocol):
    """What `record_operation` needs of a JournalWriter."""

    _operations: RecordedRows

    def _check(self, rows: RecordedRows, at: float) -> None: ...


def record_operation(self: _Writer, purgatory: str, operation: DelayedOperation[Any], timing: Timing) -> None:
    """Record a finished operation. Keeps its class and its keys, and no reference to the operation.

    This is `JournalWriter.operation_finished`, which the event loop calls for each operation. A separate
    function that only makes the row would be one more call, and would add a sixth to the cost.
    """
    rows = self._operations
    # The values have the order of FinishedOperations.
    rows += (purgatory, type(operation), timing)
    rows += ended(operation)
    if len(rows) >= rows.check_at:
        self._check(rows, timing.ended)


class KeyChecks(NamedTuple):
    """What the event loop records of checks: one list for each argument of `Observer.key_checked`."""

    purgatory: list[str]
    key: list[Hashable]
    tried: list[int]
    completed: list[int]
    # In the loop's seconds.
    at: list[float]


class Gaps(NamedTuple):
    """What is recorded of gaps; see `gap.Gap`."""

    began: list[float]
    ended: list[float]
    operations: list[int]
    checks: list[int]


def _operation_ids(chunk: ConsecutiveRows[FinishedOperations]) -> pa.Array:
    first = (chunk.run << 32) + chunk.first
    return pa.array(range(first, first + chunk.rows), pa.int64())


def _offered(chunk: ConsecutiveRows[FinishedOperations]) -> pa.Array:
    return seconds([timing.offered for timing in chunk.recorded.timing])


def _ended(chunk: ConsecutiveRows[FinishedOperations]) -> pa.Array:
    return seconds([timing.ended for timing in chunk.recorded.timing])


def _lateness(chunk: ConsecutiveRows[FinishedOperations]) -> pa.Array:
    late = pc.subtract(_ended(chunk), seconds(chunk.recorded.deadline))
    expired = pa.array([state is OperationState.EXPIRED for state in chunk.recorded.state])
    # Closing a purgatory expires operations before their deadline, and a timeout of zero has no deadline.
    return microseconds(late, where=pc.and_(expired, pc.greater_equal(late, 0.0)))


def _node(chunk: ConsecutiveRows[Any]) -> pa.Array:
    return pa.repeat(chunk.node, chunk.rows)


OPERATIONS_TABLE: Final = RecordedTable[FinishedOperations](
    OPERATIONS,
    FinishedOperations,
    lambda recorded: [timing.ended for timing in recorded.timing],
    [
        # The name given to the writer.
        Column("node", pa.string(), _node, repeats=True),
        Column("purgatory", pa.string(), lambda chunk: texts([*chunk.recorded.purgatory]), repeats=True),
        # The id is unique within the node, among all purgatories, and also after a restart. The upper 31 bits
        # are the run. The ids of one writer ascend in the order in which the operations ended. Another writer
        # has another run, and so its ids are higher or lower than all of these.
        Column("operation_id", pa.int64(), _operation_ids),
        # The name of the operation's class.
        Column(
            "kind",
            pa.string(),
            lambda chunk: pa.array([kind.__name__ for kind in chunk.recorded.kind], pa.string()),
            repeats=True,
        ),
        Column("keys", TEXTS, lambda chunk: text_lists(chunk.recorded.keys)),
        # When the operation was offered.
        Column("started", INSTANT, lambda chunk: instants(_offered(chunk), chunk.epoch)),
        # The latest timeout, in microseconds. It is null if the operation never expires, and 0 if the
        # operation was only tried.
        Column(
            "timeout_us", pa.int64(), lambda chunk: timeouts(seconds(chunk.recorded.timeout)), nullable=True
        ),
        # Microseconds from the offer to the end. An expired operation may have waited for less than its
        # timeout, because the closing of a purgatory expires pending operations. It may have waited for more
        # than its timeout if it was rescheduled.
        Column(
            "waited_us", pa.int64(), lambda chunk: microseconds(pc.subtract(_ended(chunk), _offered(chunk)))
        ),
        # Microseconds from the deadline to the end; null unless the operation ended because of its deadline.
        Column("lateness_us", pa.int64(), _lateness, nullable=True),
        # One of OUTCOMES.
        Column(
            "outcome",
            pa.string(),
            # `_value_` is the same as `value`, and is read five times as fast.
            lambda chunk: pa.array([state._value_ for state in chunk.recorded.state], pa.string()),
            repeats=True,
        ),
        # How often its condition was tried, including the first time.
        Column(
            "tries",
            pa.int32(),
            lambda chunk: pa.array([timing.tries for timing in chunk.recorded.timing], pa.int32()),
        ),
    ],
)

CHECKS_TABLE: Final = RecordedTable[KeyChecks](
    CHECKS,
    KeyChecks,
    lambda recorded: recorded.at,
    [
        Column("node", pa.string(), _node, repeats=True),
        Column("purgatory", pa.string(), lambda chunk: texts([*chunk.recorded.purgatory]), repeats=True),
        Column("key", pa.string(), lambda chunk: texts(chunk.recorded.key)),
        Column("checked", INSTANT, lambda chunk: instants(seconds(chunk.recorded.at), chunk.epoch)),
        # The number of operations that the check tried, and the number of operations that it completed.
        Column("tried", pa.int32(), lambda chunk: pa.array(chunk.recorded.tried, pa.int32())),
        Column("completed", pa.int32(), lambda chunk: pa.array(chunk.recorded.completed, pa.int32())),
    ],
)

# A gap says how many rows of the other tables were lost between two instants. Few rows in that time do not
# mean little traffic.
GAPS_TABLE: Final = RecordedTable[Gaps](
    GAPS,
    Gaps,
    lambda recorded: recorded.ended,
    [
        Column("node", pa.string(), _node, repeats=True),
        Column("began", INSTANT, lambda chunk: instants(seconds(chunk.recorded.began), chunk.epoch)),
        Column("ended", INSTANT, lambda chunk: instants(seconds(chunk.recorded.ended), chunk.epoch)),
        Column("lost_operations", pa.int64(), lambda chunk: pa.array(chunk.recorded.operations, pa.int64())),
        Column("lost_checks", pa.int64(), lambda chunk: pa.array(chunk.recorded.checks, pa.int64())),
    ],
)

OPERATIONS_SCHEMA: Final = OPERATIONS_TABLE.schema
CHECKS_SCHEMA: Final = CHECKS_TABLE.schema
GAPS_SCHEMA: Final = GAPS_TABLE.schema
SCHEMAS: Final = {OPERATIONS: OPERATIONS_SCHEMA, CHECKS: CHECKS_SCHEMA, GAPS: GAPS_SCHEMA}
# The columns of each table that older segments lack.
LATER: Final = {table.name: table.later_columns for table in (OPERATIONS_TABLE, CHECKS_TABLE, GAPS_TABLE)}
