"""The command `compact`: merges the segments of many nodes into one dataset, each row once."""

from __future__ import annotations

import argparse

from purgatory.pipeline.compaction import Compaction
from purgatory.pipeline.dataset import Dataset
from purgatory.pipeline.listing import segments
from purgatory.pipeline.schemas import TABLES, Table
from purgatory.pipeline.separation import check_apart
from purgatory.pipeline.spark import Spark


def check(options: argparse.Namespace) -> None:
    check_apart(Dataset(options.dataset), journal=options.journal)
    for table in TABLES:
        segments(options.journal, table.name)


def run(spark: Spark, options: argparse.Namespace) -> None:
    dataset = Dataset(options.dataset)
    for table in TABLES:
        compaction = compact(
            spark, options.journal, dataset, table, options.files_per_batch, retry=options.retry
        )
        print(compaction.report())
    print(f"The dataset is in {dataset.root}")


def compact(
    spark: Spark,
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
