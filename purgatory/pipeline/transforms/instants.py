"""The instant at which an operation ended, and the minute of an instant."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F


def ended() -> Column:
    """The instant at which the operation of a row ended."""
    return F.timestamp_micros(F.unix_micros("started") + F.col("waited_us"))


def minute_of(instant: Column) -> Column:
    """The beginning of the minute of an instant."""
    return F.date_trunc("minute", instant)
