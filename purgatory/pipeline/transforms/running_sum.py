"""Sums up to each row, without one task having to see a whole group."""

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
    """The frame, with a column ``<column>_running`` for each of the value columns: its sum up to the row.

    Up to and including the row, in ascending order, among the rows that agree in the columns ``within``. Rows
    that are equal in the order have the same sum, that of all of them. Nulls count as nothing, and come first
    in the order. Sums of integers and decimals are exact.

    A window over a group would put the whole of it on one task. Instead the rows are cut into as many blocks
    as ``spark.sql.shuffle.partitions`` by their order, and summed up within their block. Of the groups in
    a block only the last one can go on in the next, so the last row of each block is sent ahead to all
    blocks that follow, and what arrives there for a group is added to its rows. Three shuffles, and a row is
    computed once: a total that is joined from a second branch would have to find the same bounds of blocks
    again, which Spark draws from a sample. It is even as far as the order tells rows apart; rows that are
    equal in it share a block.
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
