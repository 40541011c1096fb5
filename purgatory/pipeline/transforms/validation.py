"""Finds rows of a journal that cannot be right, and the reason."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType

from purgatory._statistics import OUTCOMES
from purgatory.journal.schema import EXPIRED
from purgatory.pipeline.schemas import CHECKS_TABLE, GAPS_TABLE, OPERATIONS_TABLE, Table

# A date is the name of a directory, and only these years have four digits.
_EARLIEST: Final = "1970-01-01"
_LATEST: Final = "9999-12-31"
# The end of that year, in microseconds since 1970.
_END_OF_TIME: Final = 253_402_214_400_000_000
# In microseconds. `summarize.gaps` makes a row for each minute of a gap, so gaps must not be longer.
_YEAR: Final = 366 * 86_400_000_000


def validated(rows: DataFrame, table: Table) -> DataFrame:
    """Add to decoded rows the ``reason`` for which a row is refused, or its ``date`` if it is valid.

    If there are several reasons, it is the first. Rows about readable files have neither.
    """
    broken = [F.when(broken, F.lit(reason)) for reason, broken in _faults(table)]
    reason = F.when(F.col("position").isNull(), F.col("problem")).otherwise(F.coalesce(*broken))
    return rows.withColumn("reason", reason).withColumn(
        "date", F.when(F.col("reason").isNull(), F.to_date(table.instant))
    )


def _faults(table: Table) -> Iterator[tuple[str, Column]]:
    for field in table.recorded:
        if not field.nullable:
            yield f"{field.name} is null", F.col(field.name).isNull()
        if isinstance(field.dataType, ArrayType):
            yield f"{field.name} holds a null", F.exists(field.name, lambda element: element.isNull())
    yield (
        f"{table.instant} is not in the years from 1970 to 9998",
        ~F.col(table.instant).between(F.lit(_EARLIEST).cast("timestamp"), F.lit(_LATEST).cast("timestamp")),
    )
    yield from _OWN_FAULTS[table.name]()


def _faults_of_operations() -> Iterator[tuple[str, Column]]:
    expired, lateness = F.col("outcome") == EXPIRED, F.col("lateness_us")
    yield "kind is empty", F.col("kind") == ""
    yield f"outcome is none of {', '.join(OUTCOMES)}", ~F.col("outcome").isin(*OUTCOMES)
    yield "tries is below 1", F.col("tries") < 1
    yield from _negative("timeout_us", "waited_us", "lateness_us")
    yield (
        "it ended after the year 9998",
        F.col("waited_us") > _END_OF_TIME - F.unix_micros("started"),
    )
    # An expired operation without a lateness is valid: closing its purgatory expired it.
    yield (
        "lateness_us is given, but its timeout did not expire",
        lateness.isNotNull() & ~(expired & F.col("timeout_us").isNotNull()),
    )
    yield "lateness_us is more than waited_us", lateness > F.col("waited_us")


def _faults_of_checks() -> Iterator[tuple[str, Column]]:
    yield from _negative("tried", "completed")
    yield "completed is more than tried", F.col("completed") > F.col("tried")


def _faults_of_gaps() -> Iterator[tuple[str, Column]]:
    yield from _negative("lost_operations", "lost_checks")
    yield "it ended before it began", F.col("ended") < F.col("began")
    yield "it ended after the year 9998", F.unix_micros("ended") > _END_OF_TIME
    yield "it lasted for more than a year", F.unix_micros("ended") - F.unix_micros("began") > _YEAR


def _negative(*names: str) -> Iterator[tuple[str, Column]]:
    for name in names:
        yield f"{name} is negative", F.col(name) < 0


_OWN_FAULTS: Final = {
    OPERATIONS_TABLE.name: _faults_of_operations,
    CHECKS_TABLE.name: _faults_of_checks,
    GAPS_TABLE.name: _faults_of_gaps,
}
