"""Fits Spark's settings to the size of the data. Its defaults are for more data than most journals have."""

from __future__ import annotations

import argparse
from typing import Final

from pyspark.sql import SparkSession

from purgatory.pipeline.listing import segments
from purgatory.pipeline.schemas import TABLES

# In bytes of Parquet files. A partition after a shuffle has about so many.
_PARTITION_SIZE: Final = 4 << 20
# Up to this size, to compile a plan, and to plan again after each stage, costs more than it saves.
_SMALL_SIZE: Final = 8 << 20
# In `compact` Java has nothing to do with rows, unless there are duplicates. Up to this size, what its
# optimizing compiler takes is more than it saves even then.
_SHORT_SIZE: Final = 64 << 20

_PLAN_ONCE: Final = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
_AS_USUAL: Final = {
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
}


def is_short(options: argparse.Namespace) -> bool:
    """Whether a command with these options has so little for Java to do that its session is short."""
    if options.job.NAME == "compact":
        added = sum(each.size for table in TABLES for each in segments(options.journal, table.name))
        return bool(added + options.dataset.size <= _SHORT_SIZE)
    return bool(options.job.NAME == "summarize")


def fit(spark: SparkSession, size: int) -> None:
    """Prepare a session for work on so many bytes of Parquet files. What the user has set, stays."""
    context = spark.sparkContext
    partitions = max(context.defaultParallelism, -(-size // _PARTITION_SIZE))
    settings = _PLAN_ONCE if size <= _SMALL_SIZE else _AS_USUAL
    given = context.getConf()
    for name, value in {**settings, "spark.sql.shuffle.partitions": str(partitions)}.items():
        if not given.contains(name):
            spark.conf.set(name, value)
