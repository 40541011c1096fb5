"""The command `generate`: writes a journal of synthetic operations, of any size."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, fields
from functools import partial
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from purgatory.journal import schema
from purgatory.pipeline import locations
from purgatory.pipeline.addresses import absolute
from purgatory.pipeline.errors import PipelineError
from purgatory.pipeline.spark import Spark
from purgatory.pipeline.transforms.synthesis import checks, operations, with_defects
from purgatory.pipeline.workload import Workload

# A segment is read as a whole. A segment of a JournalWriter has 50,000 rows by default.
_ROWS_PER_FILE: Final = 250_000


def check(options: argparse.Namespace) -> None:
    if locations.exists(options.journal):
        raise PipelineError(f"{options.journal}: exists already; use a path that does not exist")


def run(spark: Spark, options: argparse.Namespace) -> None:
    given = {field.name: getattr(options, field.name) for field in fields(Workload)}
    given["kinds"] = tuple(given["kinds"] or Workload().kinds)
    try:
        generate(spark, options.journal, Workload(**given))
    except (Exception, KeyboardInterrupt):
        # The path did not exist before. A part of a journal would stand in the way of the next try.
        locations.delete_folder(options.journal)
        raise
    print(f"The journal is in {options.journal}, and its parameters are in {options.journal}/truth.json")


def generate(spark: Spark, journal: str, workload: Workload) -> None:
    """Write the journal to a path that does not exist."""
    segments = range(max(1, -(-workload.operations // _ROWS_PER_FILE)))
    tasks = spark.context.parallelize(segments, len(segments))
    tasks.foreach(partial(write_segments, absolute(journal), workload))
    _write(f"{journal}/{schema.GAPS}", 0, schema.GAPS_SCHEMA.empty_table())
    truth = asdict(workload) | {"start": workload.start.isoformat()}
    with locations.created(f"{journal}/truth.json") as file:
        file.write(json.dumps(truth, indent=2).encode() + b"\n")


def write_segments(journal: str, workload: Workload, number: int) -> None:
    """Write the segments with this number. This function runs in the workers."""
    first = number * _ROWS_PER_FILE
    rows = operations(workload, first, min(_ROWS_PER_FILE, workload.operations - first))
    _write(f"{journal}/{schema.OPERATIONS}", number, with_defects(rows, workload, first))
    _write(f"{journal}/{schema.CHECKS}", number, checks(rows))


def _write(folder: str, number: int, rows: pa.Table) -> None:
    with locations.created(f"{folder}/{number:06}.parquet") as file:
        pq.write_table(rows, file, compression="zstd")
