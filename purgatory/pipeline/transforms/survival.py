"""How long operations take to complete, also those that were not let: the Kaplan-Meier estimate.

A wait until completion is a survival time. One that expired is right-censored: it would have taken longer
than it was watched, but nobody knows how much. So is a cancelled one, and a failed one: its hook raised, and
that says nothing of when its condition would have held. Leaving them out makes every percentile too short,
since it is the long waits that are cut off; so does counting them as completed.

Censoring has to be independent of the wait itself: true of timeouts, and of callers that leave for reasons
of their own; not of callers that leave since they see that it will take long.

Source: Kaplan and Meier, Nonparametric Estimation from Incomplete Observations, 1958.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from purgatory.pipeline.transforms.running_sum import running_sum

# By so much may the curve be off, since it is made from sums of logarithms; a share that it meets to within
# this is met.
EXACTNESS: Final = 1e-9


def ends(operations: DataFrame) -> DataFrame:
    """Count how the operations of each `stratum` ended, by how long they had waited.

    Takes ``stratum`` (of any type), ``waited_us``, ``outcome`` and ``lateness_us``. Gives ``ended``, all of
    them; ``completed``; and ``expired``, those that their timeout ended, not the closing of their purgatory.
    """
    return operations.groupBy("stratum", "waited_us").agg(
        F.count("*").alias("ended"),
        F.count_if(F.col("outcome") == "completed").alias("completed"),
        F.count_if((F.col("outcome") == "expired") & F.col("lateness_us").isNotNull()).alias("expired"),
    )


def curves(ends: DataFrame, *, confidence: float = 0.95) -> DataFrame:
    """Estimate for each stratum and each wait that occurred which share would have waited longer.

    ``at_risk``
        how many had waited so long, those that ended just then included
    ``survival``
        the share that would not have completed by then
    ``survival_low``, ``survival_high``
        its interval of `confidence`, by Greenwood's variance on the scale of log(-log(survival)); this is the
        one that is reported, since it stays between 0 and 1 and holds for small samples
    ``plain_low``, ``plain_high``
        the same as survival plus or minus so many standard errors, cut off at 0 and 1
    ``mean_wait_us``
        how long an operation would wait on average, with this for its timeout: the area under the curve
    ``completed_running``
        how many did complete by then

    Where the curve is at zero Greenwood's formula says nothing, and the bounds are null.

    The product of the estimate is a sum of logarithms here, so that no stratum needs to fit one task.
    """
    # Those at risk are all that ended then or later: the sum from the far end.
    backwards = ends.withColumn("backwards", -F.col("waited_us"))
    counted = running_sum(
        backwards, order_by=["backwards"], value_columns=["ended"], within=["stratum"]
    ).withColumnRenamed("ended_running", "at_risk")
    remaining = F.col("at_risk") - F.col("completed")
    # Once all that are at risk complete the logarithm would be infinite. That can only be the last row.
    estimated = (
        _running(
            counted.withColumn(
                "log", _unless_last(F.log1p(-F.col("completed") / F.col("at_risk")))
            ).withColumn("variance", _unless_last(F.col("completed") / F.col("at_risk") / remaining)),
            "completed",
            "log",
            "variance",
        )
        .withColumn("before", F.exp(F.col("log_running") - F.col("log")))
        .withColumn("survival", F.col("before") * remaining / F.col("at_risk"))
        # The area under a falling staircase, taken by its steps: no row has to know the one before.
        .withColumn("step", F.col("waited_us") * F.col("before") * F.col("completed") / F.col("at_risk"))
    )
    deviations = F.lit(NormalDist().inv_cdf((1 + confidence) / 2)) * F.sqrt("variance_running")
    margin = F.col("survival") * deviations
    power = F.exp(-deviations / F.col("log_running"))
    return _running(estimated, "step").select(
        "stratum",
        "waited_us",
        "at_risk",
        "ended",
        "completed",
        "expired",
        "completed_running",
        "survival",
        _bound(F.pow("survival", power)).alias("survival_low"),
        _bound(F.pow("survival", 1 / power)).alias("survival_high"),
        _bound(F.greatest(F.col("survival") - margin, F.lit(0.0))).alias("plain_low"),
        _bound(F.least(F.col("survival") + margin, F.lit(1.0))).alias("plain_high"),
        (F.col("step_running") + F.col("waited_us") * F.col("survival")).alias("mean_wait_us"),
    )


def timeouts(curves: DataFrame, shares: Sequence[float]) -> DataFrame:
    """Read off each curve by which timeout the given shares would complete.

    ``operations``, ``followed_us``, ``known_share``
        how many there were, the longest that any was waited for, and the share that completes within that
    ``timeout_us``, ``timeout_low_us``, ``timeout_high_us``
        the timeout and its interval, in microseconds; null where the curve ends before it gets there:
        not identifiable beyond ``followed_us``
    ``naive_us``
        the percentile of those that completed, which is too short by what was cut off; to compare with
    """
    strata = curves.groupBy("stratum").agg(
        F.sum("ended").alias("operations"),
        F.max("waited_us").alias("followed_us"),
        (1 - F.min("survival")).alias("known_share"),
        F.sum("completed").alias("completions"),
    )
    low = F.coalesce("survival_low", "survival")
    readings = [
        F.struct(
            F.lit(share).alias("share"),
            _first(F.col("survival") <= 1 - share + EXACTNESS).alias("timeout_us"),
            _first(low <= 1 - share + EXACTNESS).alias("timeout_low_us"),
            _first(F.col("survival_high") <= 1 - share + EXACTNESS).alias("timeout_high_us"),
            _first(
                (F.col("completed") > 0)
                & (F.col("completed_running") >= F.col("completions") * (share - EXACTNESS))
            ).alias("naive_us"),
        )
        for share in shares
    ]
    read = (
        curves.join(F.broadcast(strata.select("stratum", "completions")), "stratum")
        .groupBy("stratum")
        .agg(F.array(*readings).alias("readings"))
        .select("stratum", F.inline("readings"))
    )
    return strata.drop("completions").join(read, "stratum")


def changes(curves: DataFrame, timeouts: DataFrame) -> DataFrame:
    """Add to each timeout what would have been different with it.

    ``more_completed``
        how many more would have completed; negative if fewer
    ``waited_less_us``
        by how many microseconds all together would have waited less; negative if more

    Whatever waited for longer than the timeout would have ended there: that is known. What had expired before
    would have gone on: how many of these would have completed until then, and when, is what the curve says of
    those that get so far, and the timeout lies on the curve. The others stay as they were.
    Both are null where there is no timeout: nothing is extrapolated.
    """
    wait, timeout = F.col("waited_us"), F.col("timeout_us")
    # Who expired was at risk, so the curve is above zero there.
    reopened = (wait < timeout) & (F.col("expired") > 0)
    per_survivor = F.col("expired") / F.col("survival")
    changed = (
        curves.join(F.broadcast(timeouts.select("stratum", "share", "timeout_us")), "stratum")
        .groupBy("stratum", "share")
        .agg(
            _sum_where(wait == timeout, F.col("survival")).alias("survival"),
            _sum_where(wait == timeout, F.col("mean_wait_us")).alias("mean_wait_us"),
            _sum_where(wait > timeout, F.col("completed")).alias("cut_off"),
            _sum_where(wait > timeout, F.col("ended") * (wait - timeout)).alias("spared_us"),
            _sum_where(reopened, F.col("expired")).alias("reopened"),
            _sum_where(reopened, per_survivor).alias("survivors"),
            _sum_where(reopened, per_survivor * F.col("mean_wait_us")).alias("survivors_waited_us"),
        )
        .select(
            "stratum",
            "share",
            (F.col("reopened") - F.col("survival") * F.col("survivors") - F.col("cut_off")).alias(
                "more_completed"
            ),
            (
                F.col("spared_us") - F.col("mean_wait_us") * F.col("survivors") + F.col("survivors_waited_us")
            ).alias("waited_less_us"),
        )
    )
    known = timeout.isNotNull()
    return (
        timeouts.join(changed, ["stratum", "share"])
        .withColumn("more_completed", F.when(known, F.col("more_completed")))
        .withColumn("waited_less_us", F.when(known, F.col("waited_less_us")))
    )


def _running(frame: DataFrame, *columns: str) -> DataFrame:
    return running_sum(frame, order_by=["waited_us"], value_columns=list(columns), within=["stratum"])


def _unless_last(term: Column) -> Column:
    return F.when(F.col("completed") < F.col("at_risk"), term).otherwise(0.0)


def _bound(bound: Column) -> Column:
    """The bound, or null at zero, or one where none has completed yet."""
    return F.when(F.col("survival") > 0, F.when(F.col("log_running") < 0, bound).otherwise(1.0))


def _first(condition: Column) -> Column:
    return F.min(F.when(condition, F.col("waited_us")))


def _sum_where(condition: Column, value: Column) -> Column:
    return F.sum(F.when(condition, value).otherwise(0).cast("double"))
