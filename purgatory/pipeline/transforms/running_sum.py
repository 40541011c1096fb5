"""Running sums. No task has to process a whole group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

_BLOCK: Final = "_running_sum_block"
_TARGET: Final = "_running_sum_target"
_LAST: Final = "_running_sum_last"


def running_sum(
    frame: DataFrame, *, order_by: Sequence[str], value_columns: Sequence[str], within: Sequence[str] = ()
) -> DataFrame:
    """Add a column ``<column>_running`` for each value column: the sum up to and including the row.

    The sum is over the rows with the same values in the columns ``within``, in ascending order. Rows that are
    equal in the order have the same sum, which includes all of them. Nulls count as zero, and come first in
    the order. Sums of integers and decimals are exact.

    A window over a group would put the whole group on one task. Instead, the rows are split by their order
    into ``spark.sql.shuffle.partitions`` blocks, and summed up within their block. Only the last group of a
    block can continue in the next block. So the last row of each block is sent to all following blocks, and
    its sum is added to the rows of the same group there. This takes three shuffles, and computes each row
    once. A second branch that computes totals would need the same bounds of blocks, but Spark draws these
    bounds from a sample each time. Blocks have about equal sizes, but rows that are equal in the order share
    a block.
    """
    blocks = int(str(frame.sparkSession.conf.get("spark.sql.shuffle.partitions")))
    running = [f"{column}_running" for column in value_columns]

    in_block = Window.partitionBy(_BLOCK).orderBy(*within, *order_by)
    up_to_here = Window.partitionBy(_BLOCK, *within).orderBy(*order_by)
    summed = (
        frame.repartitionByRange(blocks, *within, *order_by)
        .withColumn(_BLOCK, F.spark_partition_id())
        .withColumn(_LAST, F.lead(F.lit(False), default=True).over(in_block))
        .withColumns(
            {
                name: F.coalesce(
                    F.sum(column).over(up_to_here.rangeBetween(Window.unboundedPreceding, Window.currentRow)),
                    F.lit(0),
                )
                for name, column in zip(running, value_columns, strict=True)
            }
        )
    )
    ahead = F.sequence(F.col(_BLOCK), F.lit(blocks - 1))
    sent = summed.withColumn(
        _TARGET, F.explode(F.when(F.col(_LAST), ahead).otherwise(F.array(F.col(_BLOCK))))
    )
    arrived = Window.partitionBy(_TARGET, *within)
    is_own = F.col(_BLOCK) == F.col(_TARGET)
    return (
        sent.withColumns(
            {
                name: F.col(name) + F.coalesce(F.sum(F.when(~is_own, F.col(name))).over(arrived), F.lit(0))
                for name in running
            }
        )
        .where(is_own)
        .drop(_BLOCK, _TARGET, _LAST)
    )
