"""One process at a time."""

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
    """Hold the lock at `path`, a file that says who does, until the block ends.

    That of a process of this host that is gone is taken over. Raises PipelineError where another holds it.
    """
    own = f"{socket.gethostname()} {os.getpid()} {datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}"
    if not files.create_text(spark, path, own):
        holder = _holder(spark, path)
        if not _is_gone(holder) or not _taken_over(spark, path, holder, own):
            raise PipelineError(
                f"{path}: another is at work here (host, process, since: {holder or 'unknown'}); "
                "wait for it, or delete the file if it was killed"
            )
    try:
        yield
    finally:
        files.remove(spark, path)


def _holder(spark: SparkSession, path: str) -> str:
    """What the lock says of who holds it; nothing when it has just been given back."""
    try:
        return files.read_text(spark, path)
    except Py4JJavaError:
        if files.exists(spark, path):
            raise
        return ""


def _taken_over(spark: SparkSession, path: str, holder: str, own: str) -> bool:
    """Whether the lock that `holder` has left is ours now. Of all who find it, one gets it."""
    # Whoever has made this file is the only one to change the lock, for as long as that says `holder`.
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
    """Whether it was a process of this host, and is none. In a container it may have had our own number."""
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
