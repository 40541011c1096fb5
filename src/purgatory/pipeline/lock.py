"""One process at a time."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

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
        holder = files.read_text(spark, path)
        if not _is_gone(holder):
            raise PipelineError(
                f"{path}: another is at work here (host, process, since: {holder or 'unknown'}); "
                "wait for it, or delete the file if it was killed"
            )
        files.write_text(spark, path, own)
    try:
        yield
    finally:
        files.remove(spark, path)


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
