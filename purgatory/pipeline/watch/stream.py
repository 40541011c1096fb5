"""Reads a journal as it grows. One streaming query reads operations, and one reads gaps."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, Final

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.listener import (
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import TimestampType

from purgatory.pipeline.errors import PipelineError
from purgatory.pipeline.schemas import GAPS_TABLE, OPERATIONS_TABLE, Table
from purgatory.pipeline.transforms.instants import ended
from purgatory.pipeline.transforms.segments import decoded
from purgatory.pipeline.watch.monitor import Gap, Monitor, Window
from purgatory.pipeline.watch.notice import Notice
from purgatory.pipeline.watch.windows import windows

# The columns of Spark's own source of whole files.
_FILE: Final = "path string, modificationTime timestamp, length bigint, content binary"
# `since_ms` says which files are too old. By default Spark has its own limit.
_ANY_AGE: Final = "36500d"
# Spark plans one batch each `every_ms`. A segment that is too old is in a batch, but Spark does not read its
# content. With this limit, months of old segments are a few batches.
_FILES_PER_BATCH: Final = 100_000

# The name of the query's observed metrics.
_READ: Final = "read"
# The highest difference between clocks that is allowed.
_CLOCK_SKEW: Final = "interval 1 minute"

# A function that makes notices, in the thread that prints them. None says that a query has ended.
Event = Callable[[], Iterable[Notice]] | None


def check_journal(spark: SparkSession, journal: str) -> None:
    """Raise PipelineError if this is not a journal. It may be on any file system that Spark can use."""
    jvm: Any = spark.sparkContext._jvm
    for table in (OPERATIONS_TABLE, GAPS_TABLE):
        path = jvm.org.apache.hadoop.fs.Path(f"{journal}/{table.name}")
        system = path.getFileSystem(jvm.org.apache.spark.deploy.SparkHadoopUtil.get().conf())
        if not system.globStatus(path):
            raise PipelineError(
                f"{journal}: not a journal, it has no directory {table.name!r}; a JournalWriter makes one"
            )


def watched(
    spark: SparkSession,
    journal: str,
    monitor: Monitor,
    *,
    window_ms: int,
    lateness_ms: int,
    every_ms: int | None,
    since_ms: int,
) -> Generator[Notice, None, None]:
    """Yield notices about the journal as it grows, until the generator is closed.

    Begins with segments that were changed in the last `since_ms`, and looks for new ones each `every_ms`.
    Without `every_ms` it ends when all existing segments have been read. Raises StreamingQueryException if
    Spark fails.
    """
    # A separate session, so that the settings and listeners below affect no other session.
    session = spark.newSession()
    # A batch is small after it is aggregated, and each task would keep its own state.
    session.conf.set("spark.sql.shuffle.partitions", "1")
    # Old segments are only listed. If each task had only a few segments, the tasks would take longer than the
    # listing.
    session.conf.set("spark.sql.sources.parallelPartitionDiscovery.parallelism", "64")
    session.conf.set("spark.sql.files.openCostInBytes", "64k")
    events: SimpleQueue[Event] = SimpleQueue()
    since = datetime.now(UTC) - timedelta(milliseconds=since_ms)

    def update(frame: DataFrame, batch: int) -> None:
        events.put(partial(monitor.update, [Window(**row.asDict()) for row in frame.collect()]))

    def record_gaps(frame: DataFrame, batch: int) -> None:
        events.put(partial(monitor.record_gaps, [Gap(**row.asDict()) for row in frame.collect()]))

    operations = _valid(session, journal, OPERATIONS_TABLE, since, ended())
    counted = _fields_of(Window, windows(operations, length_ms=window_ms, lateness_ms=lateness_ms))
    missing = _fields_of(Gap, _valid(session, journal, GAPS_TABLE, since, F.col("ended")))
    with _listening(session, _Listener(monitor, events)):
        queries: list[StreamingQuery] = []
        try:
            for name, frame, handle in (
                (OPERATIONS_TABLE.name, counted, update),
                (GAPS_TABLE.name, missing, record_gaps),
            ):
                writer = frame.writeStream.queryName(name).foreachBatch(handle).outputMode("update")
                if every_ms is None:
                    writer.trigger(availableNow=True)
                else:
                    writer.trigger(processingTime=f"{every_ms} milliseconds")
                queries.append(writer.start())
            running = len(queries)
            while running:
                try:
                    # This waits in Python, because Ctrl-C does not interrupt a wait in Java.
                    event = events.get(timeout=lateness_ms / 1000)
                except Empty:
                    yield from monitor.open_windows()
                    continue
                if event is not None:
                    yield from event()
                    continue
                running -= 1
                for query in queries:
                    if failure := query.exception():
                        raise failure
        finally:
            for query in queries:
                query.stop()


class _Listener(StreamingQueryListener):
    """Reports refused rows, late operations, and the end of queries."""

    def __init__(self, monitor: Monitor, events: SimpleQueue[Event]) -> None:
        self._monitor = monitor
        self._events = events

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        pass

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        read = event.progress.observedMetrics[_READ].asDict()
        valid = read.pop("valid")
        if read["example"] is not None:
            self._events.put(partial(self._monitor.report_rejected, **read))
        # Spark counts late rows only after an aggregation, where a row is a group of operations.
        if event.progress.name == OPERATIONS_TABLE.name:
            self._events.put(partial(self._monitor.record_read, valid))

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        self._events.put(None)


@contextmanager
def _listening(session: SparkSession, listener: StreamingQueryListener) -> Iterator[None]:
    session.streams.addListener(listener)
    try:
        yield
    finally:
        session.streams.removeListener(listener)


def _valid(session: SparkSession, journal: str, table: Table, since: datetime, end: Column) -> DataFrame:
    """The valid rows of a table as a stream. The numbers of valid and refused rows are observed."""
    segments = (
        session.readStream.format("binaryFile")
        .schema(_FILE)
        .option("pathGlobFilter", "*.parquet")
        .option("maxFilesPerTrigger", _FILES_PER_BATCH)
        .option("maxFileAge", _ANY_AGE)
        # A file may be removed after it is listed, and before it is read.
        .option("ignoreMissingFiles", True)
        .load(f"{journal}/{table.name}")
        .where(F.col("modificationTime") >= F.lit(since))
    )
    rows = decoded(segments, table)
    # Without this, a row with a wrong date would close all windows before that date.
    future = F.when(end > F.current_timestamp() + F.expr(_CLOCK_SKEW), F.lit("it ended in the future"))
    rows = rows.withColumn("reason", F.when(F.col("reason").isNull(), future).otherwise(F.col("reason")))
    in_file = F.col("position").isNotNull()
    refused = F.col("reason").isNotNull()
    return rows.observe(
        _READ,
        F.count_if(in_file & ~refused).alias("valid"),
        F.count_if(refused & ~in_file).alias("files"),
        F.count_if(refused & in_file).alias("rows"),
        F.min(F.when(refused, F.concat("reason", F.lit(" ("), "source", F.lit(")")))).alias("example"),
    ).where(in_file & ~refused)


def _fields_of(kind: type[Window | Gap], frame: DataFrame) -> DataFrame:
    """The columns that are fields of the class, with instants in microseconds."""
    instants = {field.name for field in frame.schema if isinstance(field.dataType, TimestampType)}
    return frame.select(
        *(
            F.unix_micros(field.name).alias(field.name) if field.name in instants else field.name
            for field in fields(kind)
        )
    )
