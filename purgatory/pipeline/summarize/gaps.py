"""The minutes in which a journal is incomplete."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from purgatory.pipeline.transforms.instants import minute_of


def gap_minutes(gaps: DataFrame) -> DataFrame:
    """One row for each minute that a gap overlaps, with the sorted names of the ``nodes`` that lost rows.

    ``lost_operations`` and ``lost_checks`` are the sums over all gaps that overlap the minute. They are upper
    bounds, because a gap does not say when its rows were lost.
    """
    overlapped = F.sequence(minute_of(F.col("began")), minute_of(F.col("ended")), F.expr("interval 1 minute"))
    return (
        gaps.withColumn("minute", F.explode(overlapped))
        .groupBy("minute")
        .agg(
            F.array_sort(F.collect_set("node")).alias("nodes"),
            F.sum("lost_operations").alias("lost_operations"),
            F.sum("lost_checks").alias("lost_checks"),
        )
    )


def mark_gaps(by_minute: DataFrame, gap_minutes: DataFrame) -> DataFrame:
    """Add a column ``incomplete``: whether a gap overlaps the minute of the row."""
    overlapped = gap_minutes.select("minute", F.lit(True).alias("incomplete"))
    return by_minute.join(overlapped, "minute", "left").fillna(False, ["incomplete"])
