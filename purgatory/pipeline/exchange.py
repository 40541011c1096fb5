"""One pass over the files of a dataset. No row passes through Java.

Workers read the files, and condense their rows with Arrow. Then all condensed rows of a group, such as a
minute, go to one worker, which merges them. Spark splits the work, carries the condensed rows as bytes, and
repeats the work of a worker that was lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark import SparkContext

from purgatory.journal.schema import SCHEMAS
from purgatory.pipeline import locations
from purgatory.pipeline.columns import fitted

# In bytes. The files that one task reads have about this size together. The same number of tasks merge.
_TASK_SIZE: Final = 32 << 20
# The number of rows that are condensed at a time.
_CHUNK: Final = 1 << 17

# The name of a part, and some of its condensed rows.
Exchanged = tuple[str, pa.Table]


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the pass: it makes a result of one table of the journal. Its functions run in the workers."""

    name: str
    table: str
    # The columns of the table that it reads.
    reads: tuple[str, ...]
    # Condenses some rows of the table to few rows.
    condense: Callable[[pa.Table], pa.Table]
    # Condensed rows that are equal in these columns are merged together. The columns are texts or integers.
    group: tuple[str, ...]
    # Makes the result of some groups from all their condensed rows, which come in any order.
    merge: Callable[[pa.Table], pa.Table]

    @property
    def schema(self) -> pa.Schema:
        """The columns that it reads."""
        return pa.schema([SCHEMAS[self.table].field(name) for name in self.reads])


def gather(
    context: SparkContext, files: Mapping[str, Sequence[str]], parts: Sequence[Part]
) -> Mapping[str, pa.Table]:
    """Make one pass over the files. Returns the result of each part, by its name. Its rows are in no order.

    `files` has the paths of the files of each table. A worker holds the condensed rows of one task in memory.
    This process holds the results in memory.
    """
    sizes = locations.sizes(path for of_table in files.values() for path in of_table)
    # Each task gets large and small files.
    paths = sorted(
        ((table, path) for table, of_table in files.items() for path in of_table),
        key=lambda each: sizes[each[1]],
        reverse=True,
    )
    tasks = max(context.defaultParallelism, sum(sizes.values()) // _TASK_SIZE)
    dealt = [paths[first::tasks] for first in range(max(1, min(tasks, len(paths))))]
    condensed = context.parallelize(dealt, len(dealt)).flatMap(partial(condense, parts, tasks))
    results: dict[str, list[pa.Table]] = {
        part.name: [part.merge(part.condense(part.schema.empty_table()))] for part in parts
    }
    for name, result in condensed.partitionBy(tasks, int).mapPartitions(partial(merge, parts)).collect():
        results[name].append(result)
    return {name: pa.concat_tables(tables) for name, tables in results.items()}


def condense(
    parts: Sequence[Part], tasks: int, files: Iterable[tuple[str, str]]
) -> Iterator[tuple[int, Exchanged]]:
    """Condense the rows of the files for the tasks that merge. `tasks` is the number of these tasks.

    A file is a pair of its table and its path. Yields pairs: the number of a task, from 0, and condensed rows
    for this task.
    """
    condensed: dict[str, list[pa.Table]] = {part.name: [] for part in parts}
    for table, path in files:
        own = [part for part in parts if part.table == table]
        columns = sorted({name for part in own for name in part.reads})
        # One thread is enough, because Spark gives each core a task.
        for batch in locations.parquet(path).iter_batches(_CHUNK, columns=columns, use_threads=False):
            rows = pa.Table.from_batches([batch])
            for part in own:
                condensed[part.name].append(part.condense(fitted(rows, part.schema)))
    for part in parts:
        if condensed[part.name]:
            rows = pa.concat_tables(condensed.pop(part.name)).combine_chunks()
            task = hashes(rows.select(part.group)) % tasks
            for each in np.unique(task).tolist():
                yield each, (part.name, rows.take(pa.array(np.flatnonzero(task == each))))


def merge(parts: Sequence[Part], exchanged: Iterable[tuple[int, Exchanged]]) -> Iterator[Exchanged]:
    """Merge the condensed rows that one task got. Yields a result for each part that has such rows."""
    received: dict[str, list[pa.Table]] = {}
    for _, (name, rows) in exchanged:
        received.setdefault(name, []).append(rows)
    for part in parts:
        if part.name in received:
            yield part.name, part.merge(pa.concat_tables(received.pop(part.name)).combine_chunks())


def hashes(rows: pa.Table) -> NDArray[np.uint64]:
    """A hash of 64 bits for each row. Equal rows have equal hashes, in every process. Rows have no nulls."""
    hashes = np.zeros(rows.num_rows, np.uint64)
    for column in rows.columns:
        if pa.types.is_string(column.type):
            texts = column.combine_chunks().dictionary_encode()
            digests = (blake2b(text.encode(), digest_size=8) for text in texts.dictionary.to_pylist())
            codes = np.frombuffer(b"".join(each.digest() for each in digests), "<u8")
            values = codes[texts.indices.to_numpy()]
        else:
            values = column.to_numpy().astype(np.uint64)
        # Fibonacci hashing: the upper bits depend on all bits. The lower bits of all minutes are equal.
        hashes = (hashes ^ values) * np.uint64(0x9E3779B97F4A7C15)
        hashes ^= hashes >> np.uint64(32)
    return hashes
