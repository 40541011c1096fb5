"""Files on any file system that Spark can use."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession


def exists(spark: SparkSession, path: str) -> bool:
    """Whether a file or directory exists. A path may have wildcards."""
    jvm: Any = spark.sparkContext._jvm
    found = jvm.org.apache.hadoop.fs.Path(path)
    system = found.getFileSystem(jvm.org.apache.spark.deploy.SparkHadoopUtil.get().conf())
    return bool(system.globStatus(found))
