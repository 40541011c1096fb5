"""The command `compact`: merges the segments of many nodes into one dataset, each row once."""

from __future__ import annotations

import argparse
from typing import Final

from pyspark.sql import SparkSession

from purgatory.pipeline.arguments import add_dataset, add_journal, check_apart, whole_number
from purgatory.pipeline.compaction import Compaction
from purgatory.pipeline.dataset import Dataset
from purgatory.pipeline.listing import segments
from purgatory.pipeline.schemas import TABLES, Table

NAME: Final = "compact"
SUMMARY: Final = "Add new segments of a journal to a dataset: each row once, malformed rows in quarantine."
EXAMPLES: Final = """\
  %(prog)s build/journal build/dataset
      adds the new segments; run it again while the journal grows
  %(prog)s '/journals/*' build/dataset
      adds the journals of many nodes
  %(prog)s build/journal build/dataset --retry
      also reads again the segments that it could not read before
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_journal(parser)
    add_dataset(parser)
    parser.add_argument(
        "--files-per-batch",
        type=whole_number(1),
        default=1000,
        metavar="N",
        help="the number of segments in a batch; a batch is added whole or not at all (default: %(default)s)",
    )
    parser.add_argument(
        "--retry",
        action="store_true",
        help="read again all segments that could not be read, also segments that have not changed since",
    )


def check(options: argparse.Namespace) -> None:
    check_apart(options.dataset, journal=options.journal)
    for table in TABLES:
        segments(options.journal, table.name)


def run(spark: SparkSession, options: argparse.Namespace) -> None:
    for table in TABLES:
        compaction = compact(
            spark, options.journal, options.dataset, table, options.files_per_batch, retry=options.retry
        )
        print(compaction.report())
    print(f"The dataset is in {options.dataset.root}")


def compact(
    spark: SparkSession,
    journal: str,
    dataset: Dataset,
    table: Table,
    files_per_batch: int,
    *,
    retry: bool = False,
) -> Compaction:
    """Add the new segments of one table of the journal. Returns the compaction with its counts."""
    compaction = Compaction(spark, dataset, table)
    compaction.add(segments(journal, table.name), files_per_batch, retry=retry)
    return compaction
