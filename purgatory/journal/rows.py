"""What the event loop notes down of operations and checks, and the columns that become of it.

Noting down is what the loop pays for. So rows lie end to end in one flat list, which takes one call a row and
no object that timings, and of which each column is a slice; and whatever is computed is computed in here, in
the writer's thread. As that takes the interpreter away from the loop, it is left to Arrow where possible.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterator
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from purgatory import OperationState
from purgatory.journal.gap import Gap
from purgatory.journal.schema import CHECKS_SCHEMA, GAPS_SCHEMA, OPERATIONS_SCHEMA

# purgatory, class, keys, stay, state, timeout and deadline, which are inf for never
OPERATION_WIDTH: Final = 7
# purgatory, key, at, tried, completed
CHECK_WIDTH: Final = 5

# Rows converted at a time, which takes some two milliseconds. Then the loop may have the interpreter, for
# which it would else wait five milliseconds each time (sys.getswitchinterval).
STRIDE: Final = 1024

# Seconds; 292,000 years. What is more has no column to fit in, and never expires.
_LONGEST: Final = float(1 << 43)


class Columns:
    """Turns what was noted down into tables of the schema. The loop's time 0 was at `epoch`, in Unix time.

    Rows of operations get an id: the `run`, at random, in the upper 31 bits, and below it their number. So
    it is unique to a node that is started again, and whichever purgatory it was.
    """

    def __init__(self, node: str, epoch: float, run: int) -> None:
        self._node = text(node)
        self._epoch = epoch
        self._next_id = run << 32

    def operations(self, rows: list[Any]) -> pa.Table:
        return _table(OPERATIONS_SCHEMA, rows, OPERATION_WIDTH, self._operations)

    def checks(self, rows: list[Any]) -> pa.Table:
        return _table(CHECKS_SCHEMA, rows, CHECK_WIDTH, self._checks)

    def gap(self, gap: Gap) -> pa.Table:
        began, ended = self._instants(pa.array([gap.began, gap.ended], pa.float64())).to_pylist()
        row = [self._node, began, ended, gap.operations, gap.checks]
        return pa.table([[value] for value in row], schema=GAPS_SCHEMA)

    def _operations(self, rows: list[Any]) -> list[pa.Array]:
        purgatories, kinds, keys, timings, states, timeouts, deadlines = _columns(rows, OPERATION_WIDTH)
        first = self._next_id
        self._next_id += len(timings)
        offered = pa.array([timing.offered for timing in timings], pa.float64())
        ended = pa.array([timing.ended for timing in timings], pa.float64())
        timeout = pa.array(timeouts, pa.float64())
        late = pc.subtract(ended, pa.array(deadlines, pa.float64()))
        # Closing expires what is not due yet, and a timeout of zero has no deadline.
        is_late = pc.and_(
            pa.array([state is OperationState.EXPIRED for state in states]), pc.greater_equal(late, 0.0)
        )
        return [
            pa.repeat(self._node, len(timings)),
            _strings(purgatories),
            pa.array(range(first, self._next_id), pa.int64()),
            pa.array([kind.__name__ for kind in kinds], pa.string()),
            _lists_of_strings(keys),
            self._instants(offered),
            # Below zero says no more than zero: do not wait.
            _microseconds(pc.max_element_wise(timeout, 0.0), where=pc.less(timeout, _LONGEST)),
            _microseconds(pc.subtract(ended, offered)),
            _microseconds(late, where=is_late),
            # What `value` gives, five times as fast.
            pa.array([state._value_ for state in states], pa.string()),
            pa.array([timing.tries for timing in timings], pa.int32()),
        ]

    def _checks(self, rows: list[Any]) -> list[pa.Array]:
        purgatories, keys, moments, tried, completed = _columns(rows, CHECK_WIDTH)
        return [
            pa.repeat(self._node, len(keys)),
            _strings(purgatories),
            _strings(keys),
            self._instants(pa.array(moments, pa.float64())),
            pa.array(tried, pa.int32()),
            pa.array(completed, pa.int32()),
        ]

    def _instants(self, seconds: pa.Array) -> pa.Array:
        return _microseconds(pc.add(seconds, self._epoch)).cast(pa.timestamp("us", tz="UTC"))


def text(value: object) -> str:
    """`value` as a str that is UTF-8, whatever it is: code points that are not are escaped.

    Of an object whose str() raises, it says just that.
    """
    try:
        written = str(value)
    except Exception as error:
        written = f"<{type(value).__name__} whose str() raised {type(error).__name__}>"
    # Not all of its methods can be trusted where it is a subclass.
    return str.encode(written, "utf-8", "backslashreplace").decode()


def _strings(values: list[Hashable]) -> pa.Array:
    try:
        return pa.array([str(value) for value in values], pa.string())
    except Exception:
        # Users' code, and whatever it returns.
        return pa.array([text(value) for value in values], pa.string())


def _lists_of_strings(lists: list[tuple[Hashable, ...]]) -> pa.Array:
    offsets, values = [0], list[Hashable]()
    for each in lists:
        # An operation that has never waited may name a key twice.
        values += each if len(each) == 1 else dict.fromkeys(each)
        offsets.append(len(values))
    return pa.ListArray.from_arrays(
        pa.array(offsets, pa.int32()), _strings(values), type=OPERATIONS_SCHEMA.field("keys").type
    )


def _microseconds(seconds: pa.Array, where: pa.Array | None = None) -> pa.Array:
    """In whole ones; null where it is not `where`."""
    if where is not None:
        seconds = pc.if_else(where, seconds, None)
    return pc.round(pc.multiply(seconds, 1e6)).cast(pa.int64())


def _columns(rows: list[Any], width: int) -> Iterator[list[Any]]:
    return (rows[column::width] for column in range(width))


def _table(
    schema: pa.Schema, rows: list[Any], width: int, converted: Callable[[list[Any]], list[pa.Array]]
) -> pa.Table:
    batches = []
    for start in range(0, len(rows), STRIDE * width):
        columns = converted(rows[start : start + STRIDE * width])
        batches.append(pa.RecordBatch.from_arrays(columns, schema=schema))
        # Lets go of the interpreter.
        time.sleep(0)
    return pa.Table.from_batches(batches, schema)
