"""The command `prune`: deletes the segments of a journal whose rows are in a dataset."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime, timedelta

from purgatory.pipeline import locations
from purgatory.pipeline.batches import Batches
from purgatory.pipeline.dataset import Dataset
from purgatory.pipeline.listing import segments
from purgatory.pipeline.schemas import TABLES
from purgatory.pipeline.separation import check_apart
from purgatory.pipeline.spark import Spark
from purgatory.pipeline.text import counted


def check(options: argparse.Namespace) -> None:
    dataset = Dataset(options.dataset)
    check_apart(dataset, journal=options.journal)
    dataset.check_compacted()


def run(spark: Spark, options: argparse.Namespace) -> None:
    dataset = Dataset(options.dataset)
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
        of_all = f"{len(compacted):,} of {counted(len(found), 'segment')}"
        print(f"{table.name}: {of_all} {done}, {counted(size, 'byte')}")
