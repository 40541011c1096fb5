"""Single files and directories on any file system that Spark can use."""

from __future__ import annotations

from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from purgatory.pipeline.errors import PipelineError


def exists(spark: SparkSession, path: str) -> bool:
    """Whether a file or directory exists. A path may have wildcards."""
    files, found = _open(spark, path)
    return bool(files.globStatus(found))


def read_text(spark: SparkSession, path: str) -> str:
    """The text of a file in UTF-8."""
    files, found = _open(spark, path)
    stream = files.open(found)
    try:
        return bytes(stream.readAllBytes()).decode()
    finally:
        stream.close()


def create_text(spark: SparkSession, path: str, text: str) -> bool:
    """Create a file with this text, in UTF-8. Returns False if it exists already."""
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
    """Create or replace a file with this text, in UTF-8."""
    files, found = _open(spark, path)
    _write(files.create(found, True), text)


def remove(spark: SparkSession, path: str) -> None:
    """Remove a file, or a directory with all its content. Does nothing if it does not exist."""
    files, found = _open(spark, path)
    files.delete(found, True)


def replace_directory(spark: SparkSession, source: str, target: str) -> None:
    """Rename `source` to `target`, and replace what is there. Raises PipelineError if that fails."""
    files, found = _open(spark, target)
    files.delete(found, True)
    # rename returns False instead of raising.
    if not files.rename(_open(spark, source)[1], found):
        raise PipelineError(f"{source} is complete, but could not be renamed to {target}; rename it")


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
