"""The command `prune`: deletes the segments of a journal whose rows are in a dataset."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime, timedelta
from typing import Final

from pyspark.sql import SparkSession

from purgatory.pipeline import locations
from purgatory.pipeline.arguments import add_dataset, add_journal, check_apart, whole_number
from purgatory.pipeline.batches import Batches
from purgatory.pipeline.dataset import Dataset
from purgatory.pipeline.listing import segments
from purgatory.pipeline.schemas import TABLES

NAME: Final = "prune"
SUMMARY: Final = "Delete the segments of a journal whose rows are in a dataset."
EXAMPLES: Final = """\
  %(prog)s build/journal build/dataset --dry-run
      lists the segments that are compacted and older than a week
  %(prog)s '/journals/*' build/dataset --days 1
      deletes the segments that are compacted and older than a day
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_journal(parser)
    add_dataset(parser)
    parser.add_argument(
        "--days",
        type=whole_number(0),
        default=7,
        metavar="N",
        help="keep segments that were changed in the last N days (default: %(default)s)",
    )
    parser.add_argument("--dry-run", action="store_true", help="list the segments, and delete none")


def check(options: argparse.Namespace) -> None:
    dataset: Dataset = options.dataset
    check_apart(dataset, journal=options.journal)
    dataset.check_compacted()


def run(spark: SparkSession, options: argparse.Namespace) -> None:
    dataset: Dataset = options.dataset
    before = datetime.now(UTC) - timedelta(days=options.days)
    # Before segments are deleted, their rows in the dataset must be on the disk.
    locations.sync(dataset.root)
    for table in TABLES:
        found = segments(options.journal, table.name)
        recorded = Batches(dataset, table).recorded()
        compacted = [file for file in found if file.modified < before and recorded.has(file)]
        for file in compacted:
            if options.dry_run:
                print(file.source)
            else:
                locations.delete(file.path)
        done = "would be deleted" if options.dry_run else "deleted"
        size = sum(file.size for file in compacted)
        print(f"{table.name}: {len(compacted):,} of {len(found):,} segments {done}, {size:,} bytes")
