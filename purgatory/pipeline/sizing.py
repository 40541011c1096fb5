"""Fits Spark's settings to the size of the data. The defaults are for more data than most journals have."""

from __future__ import annotations

from typing import Final

from pyspark.sql import SparkSession

# In bytes of Parquet files. A partition after a shuffle has about this size.
_PARTITION_SIZE: Final = 4 << 20
# Up to this size, it costs more than it saves to compile a plan, and to plan again after each stage.
_SMALL_SIZE: Final = 8 << 20

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


def fit(spark: SparkSession, size: int) -> None:
    """Prepare a session for Parquet files of `size` bytes. Keeps the settings that the user has given."""
    context = spark.sparkContext
    partitions = max(context.defaultParallelism, -(-size // _PARTITION_SIZE))
    settings = _PLAN_ONCE if size <= _SMALL_SIZE else _AS_USUAL
    given = context.getConf()
    for name, value in {**settings, "spark.sql.shuffle.partitions": str(partitions)}.items():
        if not given.contains(name):
            spark.conf.set(name, value)
