"""Tables that a job replaces each time it runs."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from purgatory.pipeline import files


def delete(spark: SparkSession, path: str) -> None:
    """Delete the table at `path`, if it exists.

    A job begins by deleting the table that it writes last. So if that table exists, all tables of the job are
    from one run; the tables of an interrupted run are ignored.
    """
    files.remove(spark, path)


def replace(path: str, frame: DataFrame, *, order_by: tuple[str, ...]) -> int:
    """Write the frame as the table at `path`, in one sorted file. Returns the number of rows.

    Readers find the old table until the new one is complete, and it remains if writing fails. Between the two
    there is no table for a moment, because file systems cannot exchange two directories. One task writes the
    table, so it must be small. Raises PipelineError if the new table cannot be renamed to `path`.
    """
    spark = frame.sparkSession
    unfinished = f"{path}.unfinished"
    frame.repartition(1).sortWithinPartitions(*order_by).write.mode("overwrite").parquet(unfinished)
    files.replace_directory(spark, unfinished, path)
    return spark.read.parquet(path).count()
