"""Converts recorded rows to Arrow tables, in the writer's thread."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any, Final, TypeVar

import pyarrow as pa

from purgatory.errors import safe_text
from purgatory.journal.table import ConsecutiveRows, RecordedTable

Recorded = TypeVar("Recorded", bound=tuple[Any, ...])

# The number of rows that are converted at a time. This takes about two milliseconds. Then the thread offers
# the interpreter to the event loop. Otherwise the event loop would wait for the interpreter for five
# milliseconds each time (sys.getswitchinterval).
CHUNK_ROWS: Final = 1024


class Converter:
    """Converts recorded rows to Arrow tables with the schema of the journal.

    The loop's time 0 is at `epoch`, in seconds since 1970. Each operation gets an id. The upper 31 bits of
    the id are `run`, a random number. The lower 32 bits are the number of the operation. So an id is unique
    in its node, among all purgatories, and also after a restart.
    """

    def __init__(self, node: str, epoch: float, run: int) -> None:
        self._node = safe_text(node)
        self._epoch = epoch
        self._run = run
        # The number of converted rows, by table.
        self._converted: Counter[str] = Counter()

    def convert(self, table: RecordedTable[Recorded], flat: list[Any]) -> pa.Table:
        length = CHUNK_ROWS * table.width
        batches = []
        for start in range(0, len(flat), length):
            batches.append(self._chunk(table, flat[start : start + length]))
            # This releases the interpreter.
            time.sleep(0)
        return pa.Table.from_batches(batches, table.schema)

    def _chunk(self, table: RecordedTable[Recorded], flat: list[Any]) -> pa.RecordBatch:
        rows = len(flat) // table.width
        first = self._converted[table.name]
        self._converted[table.name] += rows
        chunk = ConsecutiveRows(table.split(flat), rows, first, self._run, self._node, self._epoch)
        arrays = [column.values(chunk) for column in table.columns]
        return pa.RecordBatch.from_arrays(arrays, schema=table.schema)
