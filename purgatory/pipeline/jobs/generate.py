"""The command `generate`: writes a journal of synthetic operations, of any size."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict, fields
from datetime import UTC, datetime
from functools import partial
from typing import Final, cast

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession

from purgatory.journal import schema
from purgatory.pipeline import locations
from purgatory.pipeline.addresses import absolute
from purgatory.pipeline.arguments import number, output, whole_number
from purgatory.pipeline.errors import PipelineError
from purgatory.pipeline.transforms.synthesis import NUMBERS, Kind, Workload, checks, operations, with_defects

NAME: Final = "generate"
SUMMARY: Final = "Write a journal of synthetic operations with known distributions."
EXAMPLES: Final = """\
  %(prog)s build/synthetic
      writes a million operations of two kinds
  %(prog)s build/synthetic --operations 100_000_000 --keys 1_000_000 --hot 0.5
      writes a hundred million operations; half of them watch one key
  %(prog)s build/synthetic --kind Fetch:0.2:1.0:0.5 --kind Patient:0.2:1.0:5
      writes two kinds with the same waits and different timeouts
"""

# A segment is read as a whole. A segment of a JournalWriter has 50,000 rows by default.
_ROWS_PER_FILE: Final = 250_000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    default = Workload()
    share = number(0, 1)
    parser.add_argument("journal", type=output, metavar="JOURNAL", help="the folder to create")
    for name, convert, meaning in (
        ("operations", whole_number(0, NUMBERS), "the number of operations"),
        ("seed", whole_number(0), "the same seed makes the same operations on every cluster"),
        ("nodes", whole_number(1), "the number of nodes"),
        ("keys", whole_number(1), "the number of keys"),
        (
            "zipf",
            number(0),
            "the k-th key is used in proportion to k to the power of -N; 0 makes all keys equally likely",
        ),
        ("hot", share, "the share of operations that watch the first key; the others choose by --zipf"),
        (
            "withdrawn",
            share,
            "the share of operations that are cancelled at a random time, if they have not ended before",
        ),
        ("malformed", share, "the share of rows with a defect"),
        ("duration", number(1e-6), "the seconds from the first start of an operation to the last start"),
    ):
        parser.add_argument(
            f"--{name}",
            type=convert,
            default=getattr(default, name),
            metavar="N",
            help=f"{meaning} (default: %(default)s)",
        )
    parser.add_argument(
        "--start",
        type=_instant,
        default=default.start,
        metavar="TIME",
        help="the start of the first operation, in UTC unless it has an offset such as +02:00 "
        "(default: %(default)s)",
    )
    parser.add_argument(
        "--kind",
        dest="kinds",
        type=_kind,
        action="append",
        metavar="NAME:MEDIAN:SIGMA:TIMEOUT",
        help="a kind; may be repeated. The time to completion is log-normal with this median, in seconds, "
        "and this sigma; the timeout is in seconds (default: "
        + ", ".join(f"{k.name}:{k.median}:{k.sigma}:{k.timeout}" for k in default.kinds)
        + ")",
    )


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


def _kind(text: str) -> Kind:
    name, *values = text.split(":")
    try:
        median, sigma, timeout = map(float, values)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be NAME:MEDIAN:SIGMA:TIMEOUT, not {text!r}") from None
    if not (name and 0 < median < 1e6 and 0 <= sigma < 100 and 0 < timeout < 1e6):
        raise argparse.ArgumentTypeError(f"{text!r}: the median and the timeout must be positive seconds")
    return Kind(name, median, sigma, timeout)


def _instant(text: str) -> datetime:
    try:
        instant = datetime.fromisoformat(text)
        return instant.replace(tzinfo=UTC) if instant.tzinfo is None else instant.astimezone(UTC)
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(f"must be like 2026-01-01T12:00, not {text!r}") from None
