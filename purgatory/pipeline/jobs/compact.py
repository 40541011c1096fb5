"""The command `compact`: merges the segments of many nodes into one dataset, each row once."""

from __future__ import annotations

import argparse
from typing import Final

from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession

from purgatory.pipeline import files
from purgatory.pipeline.arguments import add_dataset, whole_number
from purgatory.pipeline.compaction import Compaction
from purgatory.pipeline.dataset import Dataset
from purgatory.pipeline.errors import PipelineError
from purgatory.pipeline.lock import locked
from purgatory.pipeline.schemas import TABLES, Table

NAME: Final = "compact"
SUMMARY: Final = "Add new segments of a journal to a dataset: each row once, malformed rows in quarantine."
EXAMPLES: Final = """\
  %(prog)s build/journal build/dataset
      adds the new segments; run it again while the journal grows
  %(prog)s '/journals/*' hdfs:///purgatory
      adds the journals of many nodes
"""

# The columns of Spark's own source of whole files.
_FILE: Final = "path string, modificationTime timestamp, length bigint, content binary"
# Files of any age are new. By default Spark silently drops files that are a week older than the newest.
_ANY_AGE: Final = "36500d"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "journal", metavar="JOURNAL", help="the directory of the journal, or a pattern for several"
    )
    add_dataset(parser)
    parser.add_argument(
        "--files-per-batch",
        type=whole_number(1),
        default=1000,
        metavar="N",
        help="the number of segments in a batch; a batch is added whole or not at all (default: %(default)s)",
    )


def run(spark: SparkSession, options: argparse.Namespace) -> None:
    journal = options.journal.rstrip("/")
    for table in TABLES:
        if not files.exists(spark, f"{journal}/{table.name}"):
            raise PipelineError(f"{journal}: not a journal, it has no directory {table.name!r}")
    # Two processes would get the same batches, and overwrite each other's files.
    with locked(spark, options.dataset.checkpoint("compact.lock")):
        for table in TABLES:
            compaction = compact(spark, journal, options.dataset, table, options.files_per_batch)
            print(compaction.report())
    print(f"The dataset is in {options.dataset.root}")


def compact(
    spark: SparkSession, journal: str, dataset: Dataset, table: Table, files_per_batch: int
) -> Compaction:
    """Add the new segments of one table of the journal. Returns the compaction with its counts."""
    checkpoint = dataset.checkpoint(f"compact/{table.name}")
    if not files.exists(spark, checkpoint) and not dataset.read_commits(spark, table).isEmpty():
        raise PipelineError(
            f"{checkpoint}: missing, so it is unknown which segments are in {dataset.table(table)}; "
            "compact into a new directory"
        )
    compaction = Compaction(dataset, table)
    segments = (
        spark.readStream.format("binaryFile")
        .schema(_FILE)
        .option("pathGlobFilter", "*.parquet")
        .option("maxFilesPerTrigger", files_per_batch)
        .option("maxFileAge", _ANY_AGE)
        # Names of segments are unique, so the segments of a moved journal are recognised.
        .option("fileNameOnly", True)
        # A pattern: with a plain path Spark requires that the last files are still below it.
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
        # The original error, not the one that went through Java.
        raise compaction.failure from None
    finally:
        query.stop()
    return compaction
