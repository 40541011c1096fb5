"""Downsampling: curves with no more points than a screen can show."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

# Cells per height of the chart, for the share that still waits.
HEIGHT: Final = 300
# Cells per decade, for the logarithm of that share and of the waits. In all, a curve keeps some 1,000 points,
# even of a hundred million operations and of waits from a microsecond to hours.
DECADE: Final = 40

_STRATUM: Final = ("purgatory", "kind", "key")


def downsampled(curves: DataFrame) -> DataFrame:
    """Select the rows of `survival.curves` that suffice to draw the share, or its logarithm, over log time.

    Keeps the first row in each cell of a grid, and the last row of each curve. A dropped row is in the same
    cell as the last kept row before it. Takes one pass, and no curve has to fit one task.
    """
    cell = (
        F.floor(F.col("survival") * HEIGHT).alias("height"),
        # Null where the share is zero, which makes a separate cell.
        F.floor(F.log10("survival") * DECADE).alias("share"),
        F.floor(F.log10(F.greatest("waited_us", F.lit(1))) * DECADE).alias("wait"),
        (F.col("at_risk") == F.col("ended")).alias("last"),
    )
    row = F.struct("waited_us", *(name for name in curves.columns if name not in ("waited_us", *_STRATUM)))
    # The least row is the first: waited_us is its first field, and unique within a curve.
    first = curves.groupBy(*_STRATUM, *cell).agg(F.min(row).alias("row"))
    return first.select(*_STRATUM, "row.*")
