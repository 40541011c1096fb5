"""The command `optimize`: merges the small files of a dataset, and deletes the files that no table needs."""

from __future__ import annotations

import argparse

from purgatory.pipeline.batches import Batches
from purgatory.pipeline.dataset import Dataset
from purgatory.pipeline.schemas import TABLES
from purgatory.pipeline.spark import Spark
from purgatory.pipeline.tables import DERIVED_TABLES
from purgatory.pipeline.text import counted


def check(options: argparse.Namespace) -> None:
    Dataset(options.dataset).check_compacted()


def run(spark: Spark, options: argparse.Namespace) -> None:
    dataset = Dataset(options.dataset)
    for table in TABLES:
        # A killed `compact` may have left files that no commit names yet. This makes the commit.
        Batches(dataset, table)
    merged = (*map(dataset.table, TABLES), dataset.segments, dataset.quarantine)
    for stored in (*merged, *filter(lambda each: each.exists, map(dataset.derived, DERIVED_TABLES))):
        log = stored.log()
        files = log.optimize.compact()["numFilesRemoved"] if stored in merged else 0
        deleted = len(log.vacuum(dry_run=False, full=True))
        print(f"{stored.path}: {counted(files, 'file')} merged, {counted(deleted, 'old file')} deleted")
