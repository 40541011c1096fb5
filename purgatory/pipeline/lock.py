"""A lock file, so that one process at a time works on a dataset."""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from purgatory.pipeline import files
from purgatory.pipeline.errors import PipelineError


@contextmanager
def locked(spark: SparkSession, path: str) -> Iterator[None]:
    """Hold the lock at `path` until the block ends. The file names its holder: host, process, and time.

    Takes over the lock of a process of this host that has ended. Raises PipelineError if another process
    holds the lock.
    """
    own = f"{socket.gethostname()} {os.getpid()} {datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    if not files.create_text(spark, path, own):
        holder = _holder(spark, path)
        if not _is_gone(holder) or not _taken_over(spark, path, holder, own):
            raise PipelineError(
                f"{path}: another process holds this lock (host, process, since: {holder or 'unknown'}); "
                "wait for it, or delete the file if it was killed"
            )
    try:
        yield
    finally:
        files.remove(spark, path)


def _holder(spark: SparkSession, path: str) -> str:
    """The text of the lock file; empty if the lock has just been released."""
    try:
        return files.read_text(spark, path)
    except Py4JJavaError:
        if files.exists(spark, path):
            raise
        return ""


def _taken_over(spark: SparkSession, path: str, holder: str, own: str) -> bool:
    """Try to take over the lock that `holder` left. Of several processes that try, one succeeds."""
    # Only the process that created this file may change the lock while its holder is `holder`.
    claim = f"{path}-of-{re.sub('[^0-9A-Za-z]+', '-', holder)}"
    if not files.create_text(spark, claim, own):
        return False
    try:
        if _holder(spark, path) != holder:
            return False
        files.write_text(spark, path, own)
    finally:
        files.remove(spark, claim)
    return True


def _is_gone(holder: str) -> bool:
    """Whether the holder was a process of this host that has ended.

    Its id may be our own: in a container ids repeat.
    """
    host, _, rest = holder.partition(" ")
    process = rest.partition(" ")[0]
    if host != socket.gethostname() or not process.isdigit():
        return False
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return int(process) == os.getpid()
