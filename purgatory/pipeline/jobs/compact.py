"""Segments of many nodes become one dataset, each row once."""

from __future__ import annotations

import argparse
from typing import Final

from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from purgatory.pipeline import files
from purgatory.pipeline.arguments import add_dataset, whole
from purgatory.pipeline.compaction import Compaction
from purgatory.pipeline.dataset import Dataset
from purgatory.pipeline.errors import PipelineError
from purgatory.pipeline.lock import locked
from purgatory.pipeline.schemas import TABLES, Table

NAME: Final = "compact"
SUMMARY: Final = "Add what is new in a journal to a dataset: each row once, and what is malformed set aside."
EXAMPLES: Final = """\
  %(prog)s build/journal build/dataset
      again and again, while the journal grows: only new segments are read
  %(prog)s '/journals/*' hdfs:///purgatory
      the journals of many nodes at once
"""

# The columns of Spark's own source of whole files.
_FILE: Final = "path string, modificationTime timestamp, length bigint, content binary"
# A file is new however old it is. By default Spark drops those that come a week late, without a word.
_ANY_AGE: Final = "36500d"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("journal", metavar="JOURNAL", help="the journal's directory, or a pattern of several")
    add_dataset(parser)
    parser.add_argument(
        "--files-per-batch",
        type=whole(1),
        default=1000,
        metavar="N",
        help="how many segments to add at a time, each time as a whole (default: %(default)s)",
    )


def run(spark: SparkSession, options: argparse.Namespace) -> None:
    journal = options.journal.rstrip("/")
    for table in TABLES:
        if not files.exists(spark, f"{journal}/{table.name}"):
            raise PipelineError(f"{journal}: this is no journal, it has no directory {table.name!r}")
    # Two at once would be offered the same batches, and write over each other's.
    with locked(spark, options.dataset.checkpoint("compact.lock")):
        for table in TABLES:
            compaction = compact(spark, journal, options.dataset, table, options.files_per_batch)
            print(compaction.report())
    print(f"The dataset is in {options.dataset.root}")


def compact(
    spark: SparkSession, journal: str, dataset: Dataset, table: Table, files_per_batch: int
) -> Compaction:
    """Add what is new in this table of the journal; what was added, and what was not."""
    checkpoint = dataset.checkpoint(f"compact/{table.name}")
    if not files.exists(spark, checkpoint) and not dataset.read_commits(spark, table).isEmpty():
        raise PipelineError(
            f"{checkpoint}: missing, so nobody knows which segments are in {dataset.table(table)} already; "
            "compact into a new directory"
        )
    compaction = Compaction(dataset, table)
    segments = (
        spark.readStream.format("binaryFile")
        .schema(_FILE)
        .option("pathGlobFilter", "*.parquet")
        .option("maxFilesPerTrigger", files_per_batch)
        .option("maxFileAge", _ANY_AGE)
        # No two segments have the same name, so one in a journal that was moved is known.
        .option("fileNameOnly", True)
        # As a pattern, or Spark insists that what it read last is still below this path.
        .load(f"{journal}/{{{table.name}}}")
        .select("path", "content")
    )
    query = (
        segments.writeStream.foreachBatch(compaction.add)
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    try:
        query.awaitTermination()
    except StreamingQueryException:
        if compaction.failure is None:
            raise
        # What it was before it went through Java and back.
        raise compaction.failure from None
    finally:
        query.stop()
    return compaction
