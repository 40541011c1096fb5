"""Single files on whatever file system Spark reaches by their path."""

from __future__ import annotations

from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from purgatory.pipeline.errors import PipelineError


def exists(spark: SparkSession, path: str) -> bool:
    """Whether there is a file or directory; of a path with wildcards, whether it matches any."""
    files, found = _open(spark, path)
    return bool(files.globStatus(found))


def read_text(spark: SparkSession, path: str) -> str:
    """What is in this file, which is in UTF-8."""
    files, found = _open(spark, path)
    stream = files.open(found)
    try:
        return bytes(stream.readAllBytes()).decode()
    finally:
        stream.close()


def create_text(spark: SparkSession, path: str, text: str) -> bool:
    """Make it a file with this text, in UTF-8; False where there is one already."""
    files, found = _open(spark, path)
    try:
        stream = files.create(found, False)
    except Py4JJavaError:
        if files.exists(found):
            return False
        raise
    _write(stream, text)
    return True


def write_text(spark: SparkSession, path: str, text: str) -> None:
    """Make it a file with this text, in UTF-8, in place of any that was there."""
    files, found = _open(spark, path)
    _write(files.create(found, True), text)


def remove(spark: SparkSession, path: str) -> None:
    """Let there be no file or directory, and nothing in it."""
    files, found = _open(spark, path)
    files.delete(found, True)


def replace_directory(spark: SparkSession, source: str, target: str) -> None:
    """Rename `source` to `target`, in place of any that is there. Raises PipelineError where that fails."""
    files, found = _open(spark, target)
    files.delete(found, True)
    # It says so, rather than raise.
    if not files.rename(_open(spark, source)[1], found):
        raise PipelineError(f"{source} is whole, but could not be renamed to {target}; rename it")


def _write(stream: Any, text: str) -> None:
    try:
        stream.write(bytearray(text.encode()))
    finally:
        stream.close()


def _open(spark: SparkSession, path: str) -> tuple[Any, Any]:
    """Hadoop's FileSystem and Path."""
    jvm: Any = spark.sparkContext._jvm
    found = jvm.org.apache.hadoop.fs.Path(path)
    return found.getFileSystem(jvm.org.apache.spark.deploy.SparkHadoopUtil.get().conf()), found
