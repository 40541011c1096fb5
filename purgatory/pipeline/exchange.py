"""One pass over the files of a dataset. No row passes through Java.

Workers read the files, and condense their rows with Arrow. Then all condensed rows of a group, such as a
minute, go to one worker, which merges them. Spark splits the work, carries the condensed rows as bytes, and
repeats the work of a worker that was lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import RDD

from purgatory.journal.schema import SCHEMAS
from purgatory.pipeline import locations
from purgatory.pipeline.columns import fitted
from purgatory.pipeline.spark import Spark
from purgatory.pipeline.sql import select

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
    # The columns that it reads.
    reads: pa.Schema
    # Condenses some rows of the table to few rows.
    condense: Callable[[pa.Table], pa.Table]
    # Condensed rows that are equal in these columns are merged together.
    group: tuple[str, ...]
    # Makes the result of some groups from all their condensed rows, which come in any order.
    merge: Callable[[pa.Table], pa.Table]


# Reads some columns of a file, a part of the rows at a time.
Reader = Callable[[str, Sequence[str]], Iterator[pa.Table]]


def columns(table: str, *names: str) -> pa.Schema:
    """Some columns of a table of the journal."""
    return pa.schema([SCHEMAS[table].field(name) for name in names])


def rows_of(path: str, columns: Sequence[str]) -> Iterator[pa.Table]:
    """Read some columns of a file of a dataset."""
    # One thread is enough, because Spark gives each core a task.
    for batch in locations.parquet(path).iter_batches(_CHUNK, columns=columns, use_threads=False):
        yield pa.Table.from_batches([batch])


def dealt(spark: Spark, sizes: Mapping[str, int]) -> RDD[list[str]]:
    """Deal files out to tasks. `sizes` has the bytes of each file.

    Each task gets large and small files. There is a task for each core, and for each 32 MiB.
    """
    tasks = max(spark.context.defaultParallelism, sum(sizes.values()) // _TASK_SIZE)
    largest_first = sorted(sizes, key=sizes.__getitem__, reverse=True)
    of_tasks = [largest_first[first::tasks] for first in range(max(1, min(tasks, len(sizes))))]
    return spark.context.parallelize(of_tasks, len(of_tasks))


def gather(
    spark: Spark, files: Mapping[str, Sequence[str]], parts: Sequence[Part], read: Reader = rows_of
) -> Mapping[str, pa.Table]:
    """Make one pass over the files. Returns the result of each part, by its name. Its rows are in no order.

    `files` has the paths of the files of each table. A worker holds the condensed rows of one task in memory.
    This process holds the results in memory.
    """
    tables = {path: table for table, paths in files.items() for path in paths}
    sizes = locations.sizes(tables)
    tasks = max(spark.context.defaultParallelism, sum(sizes.values()) // _TASK_SIZE)
    condensed = dealt(spark, sizes).flatMap(partial(condense, parts, tasks, tables, read))
    results: dict[str, list[pa.Table]] = {
        part.name: [part.merge(part.condense(part.reads.empty_table()))] for part in parts
    }
    for name, result in condensed.partitionBy(tasks, int).mapPartitions(partial(merge, parts)).collect():
        results[name].append(result)
    return {name: pa.concat_tables(tables, promote_options="default") for name, tables in results.items()}


def condense(
    parts: Sequence[Part], tasks: int, tables: Mapping[str, str], read: Reader, paths: Iterable[str]
) -> Iterator[tuple[int, Exchanged]]:
    """Condense the rows of the files for the tasks that merge. `tasks` is the number of these tasks.

    `tables` has the table of each path. Yields pairs: the number of a task, from 0, and condensed rows for
    this task.
    """
    condensed: dict[str, list[pa.Table]] = {part.name: [] for part in parts}
    for path in paths:
        own = [part for part in parts if part.table == tables[path]]
        for rows in read(path, sorted({name for part in own for name in part.reads.names})):
            for part in own:
                condensed[part.name].append(part.condense(fitted(rows, part.reads)))
    for part in parts:
        if condensed[part.name]:
            rows = pa.concat_tables(condensed.pop(part.name))
            sent = select(f"SELECT *, hash({', '.join(part.group)}) % {tasks} AS task FROM rows", rows)
            for task in pc.unique(sent["task"]).to_pylist():
                own_rows = sent.filter(pc.equal(sent["task"], task)).drop_columns("task")
                yield task, (part.name, own_rows.combine_chunks())


def merge(parts: Sequence[Part], exchanged: Iterable[tuple[int, Exchanged]]) -> Iterator[Exchanged]:
    """Merge the condensed rows that one task got. Yields a result for each part that has such rows."""
    received: dict[str, list[pa.Table]] = {}
    for _, (name, rows) in exchanged:
        received.setdefault(name, []).append(rows)
    for part in parts:
        if part.name in received:
            yield part.name, part.merge(pa.concat_tables(received.pop(part.name)))


def map_files(
    spark: Spark, paths: Sequence[str], schema: pa.Schema, find: Callable[[pa.Table], pa.Table]
) -> pa.Table:
    """What workers find in each file, which they read whole. Files have the columns of the schema."""
    found = dealt(spark, locations.sizes(paths)).flatMap(partial(found_in, schema, find)).collect()
    return pa.concat_tables([find(schema.empty_table()), *found])


def found_in(
    schema: pa.Schema, find: Callable[[pa.Table], pa.Table], paths: Iterable[str]
) -> Iterator[pa.Table]:
    """The part of `map_files` that runs in the workers."""
    for path in paths:
        yield find(fitted(locations.parquet(path).read(schema.names, use_threads=False), schema))
