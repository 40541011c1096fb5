"""When an operation ended, and which minute that is."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F


def ended() -> Column:
    """The moment at which an operation ended, of a row of operations."""
    return F.timestamp_micros(F.unix_micros("started") + F.col("waited_us"))


def minute_of(instant: Column) -> Column:
    """The beginning of its minute."""
    return F.date_trunc("minute", instant)
