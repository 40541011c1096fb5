"""One pass over the files of a dataset, in which no row passes through Java.

Workers read the files and condense their rows by columns, with Arrow. What is left of a group, such as a
minute, is then sent to one worker, which merges it. Spark splits the work, carries the condensed rows as
bytes, and repeats what was lost with a worker.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pyspark import SparkContext

from purgatory.journal.schema import SCHEMAS
from purgatory.pipeline.columns import fitted

# A task reads files of about so many bytes, and merges what is left of about so many.
_TASK_SIZE: Final = 32 << 20
# Rows that are condensed at a time.
_CHUNK: Final = 1 << 17

# The name of a part, and condensed rows of it.
Exchanged = tuple[str, pa.Table]


@dataclass(frozen=True, slots=True)
class Part:
    """What is to be found in the rows of one table of the journal. The functions run in the workers."""

    name: str
    table: str
    # The columns of the table that it reads.
    reads: tuple[str, ...]
    # Makes few rows of some rows of the table.
    condense: Callable[[pa.Table], pa.Table]
    # All condensed rows that are equal in these columns, texts and whole numbers, are merged together.
    group: tuple[str, ...]
    # Makes the result of all condensed rows of some groups, which come in any order.
    merge: Callable[[pa.Table], pa.Table]

    @property
    def schema(self) -> pa.Schema:
        """The columns that it reads."""
        return pa.schema([SCHEMAS[self.table].field(name) for name in self.reads])


def gather(
    context: SparkContext, files: Mapping[str, Sequence[str]], parts: Sequence[Part]
) -> Mapping[str, pa.Table]:
    """The results of each part, by its name, with all groups; the rows are in no order.

    `files` has the paths of the files of each table. A worker holds the condensed rows of one task, and the
    memory of this process the results.
    """
    sizes = {path: os.path.getsize(path) for of_table in files.values() for path in of_table}
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
    """Condense the rows of the files, each a table and a path, for so many tasks that merge.

    Gives the number of a task, from 0, and what it gets.
    """
    condensed: dict[str, list[pa.Table]] = {part.name: [] for part in parts}
    for table, path in files:
        own = [part for part in parts if part.table == table]
        columns = sorted({name for part in own for name in part.reads})
        # Spark gives each core a task.
        for batch in pq.ParquetFile(path).iter_batches(_CHUNK, columns=columns, use_threads=False):
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
    """Merge what one task gets. Gives the results of the parts of which it got rows."""
    received: dict[str, list[pa.Table]] = {}
    for _, (name, rows) in exchanged:
        received.setdefault(name, []).append(rows)
    for part in parts:
        if part.name in received:
            yield part.name, part.merge(pa.concat_tables(received.pop(part.name)).combine_chunks())


def hashes(rows: pa.Table) -> NDArray[np.uint64]:
    """64 bits for each row, without nulls: those of equal rows are equal, in every process."""
    hashes = np.zeros(rows.num_rows, np.uint64)
    for column in rows.columns:
        if pa.types.is_string(column.type):
            texts = column.combine_chunks().dictionary_encode()
            digests = (blake2b(text.encode(), digest_size=8) for text in texts.dictionary.to_pylist())
            codes = np.frombuffer(b"".join(each.digest() for each in digests), "<u8")
            values = codes[texts.indices.to_numpy()]
        else:
            values = column.to_numpy().astype(np.uint64)
        # Fibonacci hashing: the upper bits depend on all bits. Minutes alone have equal lower bits.
        hashes = (hashes ^ values) * np.uint64(0x9E3779B97F4A7C15)
        hashes ^= hashes >> np.uint64(32)
    return hashes
