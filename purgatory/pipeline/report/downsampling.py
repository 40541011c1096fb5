"""Curves of as many points as a screen can show."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

# A curve is kept to within one part in so many of its height,
HEIGHT: Final = 300
# and its share and its waits to within one part in so many of a decade. In all that is some 1,000 points, of
# a hundred million operations and of waits from a microsecond to hours.
DECADE: Final = 40

_SUBJECT: Final = ("purgatory", "kind", "key")


def thinned(curves: DataFrame) -> DataFrame:
    """The rows of `survival.curves` that are enough to draw them over log time, by share or its logarithm.

    Of those that share a cell of this grid the first remains, and the last row of each curve. What is left
    out is in one cell with the last row before it that remains. One pass, and no curve has to fit one task.
    """
    cell = (
        F.floor(F.col("survival") * HEIGHT).alias("height"),
        # Null at zero, which is a cell of its own.
        F.floor(F.log10("survival") * DECADE).alias("share"),
        F.floor(F.log10(F.greatest("waited_us", F.lit(1))) * DECADE).alias("wait"),
        (F.col("at_risk") == F.col("ended")).alias("last"),
    )
    row = F.struct("waited_us", *(name for name in curves.columns if name not in ("waited_us", *_SUBJECT)))
    # By its first column, which no two rows of a curve have in common.
    first = curves.groupBy(*_SUBJECT, *cell).agg(F.min(row).alias("row"))
    return first.select(*_SUBJECT, "row.*")
