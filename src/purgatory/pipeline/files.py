"""Single files on whatever file system Spark reaches by their path."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from purgatory.pipeline.errors import PipelineError


def exists(spark: SparkSession, path: str) -> bool:
    """Whether there is a file or directory; of a path with wildcards, whether it matches any."""
    files, found = _open(spark, path)
    return bool(files.globStatus(found))


def write_text(spark: SparkSession, path: str, text: str) -> None:
    """Make it a file with this text, in UTF-8, in place of any that was there."""
    files, found = _open(spark, path)
    stream = files.create(found, True)
    try:
        stream.write(bytearray(text.encode()))
    finally:
        stream.close()


def replace_directory(spark: SparkSession, source: str, target: str) -> None:
    """Rename `source` to `target`, in place of any that is there. Raises PipelineError where that fails."""
    files, found = _open(spark, target)
    files.delete(found, True)
    # It says so, rather than raise.
    if not files.rename(_open(spark, source)[1], found):
        raise PipelineError(f"{source} is whole, but could not be renamed to {target}; rename it")


def _open(spark: SparkSession, path: str) -> tuple[Any, Any]:
    """Hadoop's FileSystem and Path."""
    jvm: Any = spark.sparkContext._jvm
    found = jvm.org.apache.hadoop.fs.Path(path)
    return found.getFileSystem(jvm.org.apache.spark.deploy.SparkHadoopUtil.get().conf()), found
