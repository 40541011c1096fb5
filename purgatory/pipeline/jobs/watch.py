"""The summary of a journal while it is being written."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from functools import partial
from queue import Empty, SimpleQueue
from typing import Final

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

from purgatory.pipeline import files
from purgatory.pipeline.errors import PipelineError
from purgatory.pipeline.monitor import HEADER, Gap, Monitor, Window
from purgatory.pipeline.schemas import GAPS_TABLE, OPERATIONS_TABLE, Table
from purgatory.pipeline.transforms.instants import ended
from purgatory.pipeline.transforms.segments import decoded
from purgatory.pipeline.transforms.validation import judged
from purgatory.pipeline.transforms.windows import windows

NAME: Final = "watch"
SUMMARY: Final = "Follow a journal: a line for each stretch of time and kind, and a warning when more expire."
EXAMPLES: Final = """\
  %(prog)s build/journal
      until Ctrl-C
  %(prog)s '/journals/*' --window 1min --lateness 65s --since 1d
      of many nodes, whose writers have max_seconds=60, beginning with the last day
"""

# The columns of Spark's own source of whole files.
_FILE: Final = "path string, modificationTime timestamp, length bigint, content binary"
# What is too old is for --since to say; by default Spark has a notion of its own.
_ANY_AGE: Final = "36500d"
# A batch is planned each --every, and of an old segment only its time is asked for. So this
# makes months of them a few batches.
_FILES_PER_BATCH: Final = 100_000

_UNITS: Final = {"ms": 1, "s": 1000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
_DURATION: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s|min|h|d)")

# The name of what a query observes.
_REFUSED: Final = "refused"
# By so much, at most.
_CLOCKS_DIFFER: Final = "interval 1 minute"

# What finds the lines to print, in the thread that prints them. None: a query ended.
Told = Callable[[], Iterable[str]] | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("journal", metavar="JOURNAL", help="the journal's directory, or a pattern of several")
    for name, default, what in (
        ("window", "10s", "how long a stretch of time is"),
        ("every", "5s", "how often to look for new segments"),
        (
            "lateness",
            "15s",
            "how much later than others an operation may become known: the time a writer takes to write a "
            "segment, which is its max_seconds, 10 by default, and some seconds",
        ),
        ("since", "10min", "begin with segments so old, to learn from them what is usual"),
    ):
        parser.add_argument(
            f"--{name}",
            type=milliseconds,
            default=milliseconds(default),
            metavar="TIME",
            help=f"{what}; a number and one of {', '.join(_UNITS)} (default: {default})",
        )
    parser.add_argument("--once", action="store_true", help="end when all that is there has been told of")


def milliseconds(text: str) -> int:
    """Argument type: a time such as 10s. Not zero."""
    parts = _DURATION.fullmatch(text)
    value = round(float(parts[1]) * _UNITS[parts[2]]) if parts else 0
    if not value:
        raise argparse.ArgumentTypeError(
            f"must be a number and one of {', '.join(_UNITS)}, as in 10s, not {text!r}"
        )
    return value


def run(spark: SparkSession, options: argparse.Namespace) -> None:
    journal = options.journal.rstrip("/")
    for table in (OPERATIONS_TABLE, GAPS_TABLE):
        if not files.exists(spark, f"{journal}/{table.name}"):
            raise PipelineError(
                f"{journal}: this is no journal, it has no directory {table.name!r}; a JournalWriter makes it"
            )
    monitor = Monitor(options.lateness * 1000)
    print(HEADER, flush=True)
    try:
        with closing(watch(spark, journal, options, monitor)) as lines:
            for line in lines:
                print(line, flush=True)
    finally:
        for line in monitor.so_far():
            print(line, flush=True)


def watch(
    spark: SparkSession, journal: str, options: argparse.Namespace, monitor: Monitor
) -> Generator[str, None, None]:
    """What there is to say of the journal, as it becomes known, until it is closed.

    Raises StreamingQueryException where Spark fails.
    """
    # One of its own, since its settings and listeners are none of the others' business.
    session = spark.newSession()
    # What is left of a batch once it is counted is little, and each task would keep a state of its own.
    session.conf.set("spark.sql.shuffle.partitions", "1")
    # Old segments are only listed. A task for every few of them would take longer than they do.
    session.conf.set("spark.sql.sources.parallelPartitionDiscovery.parallelism", "64")
    session.conf.set("spark.sql.files.openCostInBytes", "64k")
    told: SimpleQueue[Told] = SimpleQueue()
    since = datetime.now(UTC) - timedelta(milliseconds=options.since)

    def hear(frame: DataFrame, batch: int) -> None:
        told.put(partial(monitor.hear, [Window(**row.asDict()) for row in frame.collect()]))

    def lose(frame: DataFrame, batch: int) -> None:
        told.put(partial(monitor.lose, [Gap(**row.asDict()) for row in frame.collect()]))

    operations = _valid(session, journal, OPERATIONS_TABLE, since, ended())
    seen = _fields_of(Window, windows(operations, length_ms=options.window, lateness_ms=options.lateness))
    missing = _fields_of(Gap, _valid(session, journal, GAPS_TABLE, since, F.col("ended")))
    with _listening(session, _Listener(monitor, told)):
        queries: list[StreamingQuery] = []
        try:
            for frame, take in ((seen, hear), (missing, lose)):
                writer = frame.writeStream.foreachBatch(take).outputMode("update")
                if options.once:
                    writer.trigger(availableNow=True)
                else:
                    writer.trigger(processingTime=f"{options.every} milliseconds")
                queries.append(writer.start())
            running = len(queries)
            while running:
                try:
                    # Waiting is Python's, since Spark's does not end with Ctrl-C.
                    find = told.get(timeout=options.lateness / 1000)
                except Empty:
                    yield from monitor.so_far()
                    continue
                if find is not None:
                    yield from find()
                    continue
                running -= 1
                for query in queries:
                    if failure := query.exception():
                        raise failure
        finally:
            for query in queries:
                query.stop()


class _Listener(StreamingQueryListener):
    """Tells of what was refused and of what came too late, and when a query ended."""

    def __init__(self, monitor: Monitor, told: SimpleQueue[Told]) -> None:
        self._monitor = monitor
        self._told = told

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        pass

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        refused = event.progress.observedMetrics[_REFUSED]
        if refused["example"] is not None:
            self._told.put(partial(self._monitor.refuse, **refused.asDict()))
        if any(state.numRowsDroppedByWatermark for state in event.progress.stateOperators):
            self._told.put(self._monitor.late)

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        self._told.put(None)


@contextmanager
def _listening(session: SparkSession, listener: StreamingQueryListener) -> Iterator[None]:
    session.streams.addListener(listener)
    try:
        yield
    finally:
        session.streams.removeListener(listener)


def _valid(session: SparkSession, journal: str, table: Table, since: datetime, end: Column) -> DataFrame:
    """The rows of this table, as they are written; what is refused of them is observed."""
    segments = (
        session.readStream.format("binaryFile")
        .schema(_FILE)
        .option("pathGlobFilter", "*.parquet")
        .option("maxFilesPerTrigger", _FILES_PER_BATCH)
        .option("maxFileAge", _ANY_AGE)
        # One that is removed between being listed and being read.
        .option("ignoreMissingFiles", True)
        .load(f"{journal}/{table.name}")
        .where(F.col("modificationTime") >= F.lit(since))
    )
    rows = judged(decoded(segments, table), table)
    # Else the first row with a wrong date would close all windows up to there.
    future = F.when(end > F.current_timestamp() + F.expr(_CLOCKS_DIFFER), F.lit("it ended in the future"))
    rows = rows.withColumn("reason", F.when(F.col("reason").isNull(), future).otherwise(F.col("reason")))
    in_file = F.col("position").isNotNull()
    refused = F.col("reason").isNotNull()
    return rows.observe(
        _REFUSED,
        F.count_if(refused & ~in_file).alias("files"),
        F.count_if(refused & in_file).alias("rows"),
        F.min(F.when(refused, F.concat("reason", F.lit(" ("), "source", F.lit(")")))).alias("example"),
    ).where(in_file & ~refused)


def _fields_of(kind: type[Window | Gap], frame: DataFrame) -> DataFrame:
    """The columns that it has fields for, instants as microseconds."""
    instants = {field.name for field in frame.schema if isinstance(field.dataType, TimestampType)}
    return frame.select(
        *(
            F.unix_micros(field.name).alias(field.name) if field.name in instants else field.name
            for field in fields(kind)
        )
    )
