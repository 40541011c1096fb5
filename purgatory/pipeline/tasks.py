"""The tasks that files are dealt out to, and frames of the rows that they read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

# In bytes. The files that one task reads have about this size together.
TASK_SIZE: Final = 32 << 20


def dealt(sizes: Mapping[str, int], cores: int) -> list[list[str]]:
    """The files of each task. There is one task at least. `sizes` has the bytes of each file.

    Each task gets large and small files. There is a task for each core, and for each TASK_SIZE.
    """
    tasks = max(1, min(max(cores, sum(sizes.values()) // TASK_SIZE), len(sizes)))
    largest_first = sorted(sizes, key=sizes.__getitem__, reverse=True)
    return [largest_first[first::tasks] for first in range(tasks)]


def read_in_workers(
    spark: SparkSession,
    sizes: Mapping[str, int],
    read: Callable[[str], Iterable[pa.RecordBatch]],
    schema: StructType,
) -> DataFrame:
    """The rows that `read` gives for each file, with these columns. It runs in the workers."""
    tasks = dealt(sizes, spark.sparkContext.defaultParallelism)
    # Each row is the number of a task.
    numbers = spark.range(0, len(tasks), 1, len(tasks))
    return numbers.mapInArrow(partial(_read, tasks, read), schema)


def _read(
    tasks: Sequence[Sequence[str]],
    read: Callable[[str], Iterable[pa.RecordBatch]],
    numbers: Iterator[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    for batch in numbers:
        for number in batch["id"].to_pylist():
            for path in tasks[number]:
                yield from read(path)
