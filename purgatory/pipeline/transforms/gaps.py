"""The minutes of which a journal is incomplete."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from purgatory.pipeline.transforms.instants import minute_of


def gap_minutes(gaps: DataFrame) -> DataFrame:
    """A row for each minute that a gap touches, with the names of the ``nodes`` that lost rows in it, sorted.

    ``lost_operations`` and ``lost_checks`` are those of all gaps that touch it: the most it may lack, since
    a gap does not tell when in it a row was lost.
    """
    touched = F.sequence(minute_of(F.col("began")), minute_of(F.col("ended")), F.expr("interval 1 minute"))
    return (
        gaps.withColumn("minute", F.explode(touched))
        .groupBy("minute")
        .agg(
            F.array_sort(F.collect_set("node")).alias("nodes"),
            F.sum("lost_operations").alias("lost_operations"),
            F.sum("lost_checks").alias("lost_checks"),
        )
    )


def mark_gaps(by_minute: DataFrame, gap_minutes: DataFrame) -> DataFrame:
    """The rows by minute, with ``incomplete``: whether a gap touches the minute of the row."""
    touched = gap_minutes.select("minute", F.lit(True).alias("incomplete"))
    return by_minute.join(touched, "minute", "left").fillna(False, ["incomplete"])
