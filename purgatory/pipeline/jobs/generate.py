"""The command `generate`: writes a journal of synthetic operations, of any size."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict, fields
from pathlib import Path
from shutil import rmtree
from typing import Final

from pyspark.sql import SparkSession

from purgatory.journal import schema
from purgatory.pipeline.errors import PipelineError
from purgatory.pipeline.schemas import GAP_COLUMNS
from purgatory.pipeline.transforms.synthesis import checks, operations, with_defects
from purgatory.pipeline.workload import Workload

# A segment is read as a whole. A segment of a JournalWriter has 50,000 rows by default.
_ROWS_PER_FILE: Final = 250_000


def check(options: argparse.Namespace) -> None:
    if Path(options.journal).exists():
        raise PipelineError(f"{options.journal}: exists already; use a path that does not exist")


def run(spark: SparkSession, options: argparse.Namespace) -> None:
    given = {field.name: getattr(options, field.name) for field in fields(Workload)}
    given["kinds"] = tuple(given["kinds"] or Workload().kinds)
    try:
        generate(spark, options.journal.rstrip("/"), Workload(**given))
    except (Exception, KeyboardInterrupt):
        # The path did not exist before. A part of a journal would stand in the way of the next try.
        rmtree(options.journal, ignore_errors=True)
        raise
    print(f"The journal is in {options.journal}, and its parameters are in {options.journal}/truth.json")


def generate(spark: SparkSession, journal: str, workload: Workload) -> None:
    """Write the journal to a path that does not exist."""
    parts = max(1, -(-workload.operations // _ROWS_PER_FILE))
    synthetic = operations(spark.range(0, workload.operations, 1, parts), workload)
    with_defects(synthetic, workload).write.parquet(f"{journal}/{schema.OPERATIONS}")
    checks(synthetic).write.parquet(f"{journal}/{schema.CHECKS}")
    spark.createDataFrame([], GAP_COLUMNS).write.parquet(f"{journal}/{schema.GAPS}")
    truth = asdict(workload) | {"start": workload.start.isoformat()}
    Path(journal, "truth.json").write_text(json.dumps(truth, indent=2) + "\n", encoding="utf-8")
