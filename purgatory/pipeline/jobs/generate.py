"""The command `generate`: writes a journal of synthetic operations, of any size."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict, fields
from functools import partial
from typing import Final, cast

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession

from purgatory.journal import schema
from purgatory.pipeline import locations
from purgatory.pipeline.addresses import absolute
from purgatory.pipeline.errors import PipelineError
from purgatory.pipeline.transforms.synthesis import checks, operations, with_defects
from purgatory.pipeline.workload import Workload

# A segment is read as a whole. A segment of a JournalWriter has 50,000 rows by default.
_ROWS_PER_FILE: Final = 250_000


def check(options: argparse.Namespace) -> None:
    if locations.exists(options.journal):
        raise PipelineError(f"{options.journal}: exists already; use a path that does not exist")


def run(spark: SparkSession, options: argparse.Namespace) -> None:
    given = {field.name: getattr(options, field.name) for field in fields(Workload)}
    given["kinds"] = tuple(given["kinds"] or Workload().kinds)
    try:
        generate(spark, options.journal, Workload(**given))
    except (Exception, KeyboardInterrupt):
        # The path did not exist before. A part of a journal would stand in the way of the next try.
        locations.delete_folder(options.journal)
        raise
    print(f"The journal is in {options.journal}, and its parameters are in {options.journal}/truth.json")


def generate(spark: SparkSession, journal: str, workload: Workload) -> None:
    """Write the journal to a path that does not exist."""
    parts = max(1, -(-workload.operations // _ROWS_PER_FILE))
    synthetic = operations(spark.range(0, workload.operations, 1, parts), workload)
    _write(with_defects(synthetic, workload), f"{journal}/{schema.OPERATIONS}")
    _write(checks(synthetic), f"{journal}/{schema.CHECKS}")
    _write_segment(f"{journal}/{schema.GAPS}", 0, schema.GAPS_SCHEMA.empty_table())
    truth = asdict(workload) | {"start": workload.start.isoformat()}
    with locations.created(f"{journal}/truth.json") as file:
        file.write(json.dumps(truth, indent=2).encode() + b"\n")


def _write(frame: DataFrame, folder: str) -> None:
    """Write a segment for each task that has rows. Arrow writes it, in the worker."""
    frame.mapInArrow(partial(write_batches, absolute(folder)), "segment long").collect()


def write_batches(folder: str, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The part of `generate` that runs in the workers."""
    if rows := list(batches):
        task = cast(TaskContext, TaskContext.get()).partitionId()
        _write_segment(folder, task, pa.Table.from_batches(rows))
    return iter(())


def _write_segment(folder: str, number: int, rows: pa.Table) -> None:
    with locations.created(f"{folder}/{number:06}.parquet") as file:
        pq.write_table(rows, file, compression="zstd")
