"""Tables that a job makes anew each time it runs."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from purgatory.pipeline import files


def withdraw(spark: SparkSession, path: str) -> None:
    """Take away the table at `path`, if there is one: the one that a job writes last, when it begins.

    So where it is, all of the job are of one run, and what an interrupted run has left counts for nothing.
    """
    files.remove(spark, path)


def replace(path: str, frame: DataFrame, *, order_by: tuple[str, ...]) -> int:
    """Make these rows the table at `path`, in one sorted file, and return how many they are.

    A table that is there is what a reader finds, and what remains if this fails, until the new one is whole.
    Then there is none for a moment, since file systems do not exchange two directories. For tables that are
    small enough for one task to write. Raises PipelineError where the new one cannot be put in place.
    """
    spark = frame.sparkSession
    unfinished = f"{path}.unfinished"
    frame.repartition(1).sortWithinPartitions(*order_by).write.mode("overwrite").parquet(unfinished)
    files.replace_directory(spark, unfinished, path)
    return spark.read.parquet(path).count()
