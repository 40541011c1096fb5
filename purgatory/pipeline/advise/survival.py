"""The Kaplan-Meier estimate of how long operations take to complete, if nothing ends them before.

A wait until completion is a survival time. The wait of an operation that expired is right-censored: the
operation would have waited longer, but it is unknown how much longer. The wait of a cancelled operation is
censored, too. So is the wait of a failed operation: its hook raised, which says nothing about when its
condition would have held. Long waits are censored most. So every percentile is too short if censored waits
are left out, and also if they are counted as completed.

Censoring must be independent of the wait itself. This is true of timeouts, and of callers that leave for
other reasons. It is not true of callers that leave because they see that the wait will be long.

Source: Kaplan and Meier, Nonparametric Estimation from Incomplete Observations, 1958.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from purgatory.journal.schema import COMPLETED, EXPIRED
from purgatory.pipeline.transforms.running_sum import running_sum

# The curve is computed from sums of logarithms, with an error below this. A share counts as reached if the
# curve is this close to it.
EXACTNESS: Final = 1e-9

# The bounds of a 95 % interval are this many standard errors from the estimate.
Z: Final = NormalDist().inv_cdf(0.975)

# The curve has settled when only this share of the operations that complete has not completed yet.
UNSETTLED: Final = 0.001


def ends(operations: DataFrame) -> DataFrame:
    """Count the operations of each stratum by their wait.

    Reads ``stratum`` (of any type), ``waited_us``, ``outcome`` and ``lateness_us``. Gives the numbers of
    operations that ``ended`` with any outcome, that ``completed``, and that ``expired`` by their timeout.
    Operations that expired because their purgatory closed are not in ``expired``.
    """
    return operations.groupBy("stratum", "waited_us").agg(
        F.count("*").alias("ended"),
        F.count_if(F.col("outcome") == COMPLETED).alias("completed"),
        F.count_if((F.col("outcome") == EXPIRED) & F.col("lateness_us").isNotNull()).alias("expired"),
    )


def curves(ends: DataFrame) -> DataFrame:
    """Estimate the share that would have waited longer, for each stratum and each wait that occurred.

    ``at_risk``
        the number of operations that waited at least this long
    ``survival``
        the share that would not have completed by this wait
    ``survival_low``, ``survival_high``
        the 95 % confidence interval of ``survival``, by Greenwood's variance on the scale of
        log(-log(survival)). The report has this interval, because it stays between 0 and 1 and holds for
        small samples
    ``plain_low``, ``plain_high``
        the interval of survival plus or minus a number of standard errors, clipped to 0 and 1
    ``log_variance``
        the variance of the logarithm of ``survival``, by Greenwood's formula
    ``mean_wait_us``
        the average wait of an operation if this wait were its timeout: the area under the curve
    ``completed_running``
        the number of operations that completed by this wait

    Where the curve is zero, Greenwood's formula is undefined, and the bounds and the variance are null.

    The product of the estimate is computed as a sum of logarithms, so that no task has to hold a whole
    stratum.
    """
    # The operations at risk are all operations that ended at this wait or later: the running sum from the
    # longest wait.
    backwards = ends.withColumn("backwards", -F.col("waited_us"))
    counted = running_sum(
        backwards, order_by=["backwards"], value_columns=["ended"], within=["stratum"]
    ).withColumnRenamed("ended_running", "at_risk")
    remaining = F.col("at_risk") - F.col("completed")
    # If all operations at risk complete, the logarithm is infinite. That can only happen in the last row.
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
        # The area under the curve is added up by the steps of the curve. So no row needs the row before it.
        .withColumn("step", F.col("waited_us") * F.col("before") * F.col("completed") / F.col("at_risk"))
    )
    deviations = F.lit(Z) * F.sqrt("variance_running")
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
        F.when(F.col("survival") > 0, F.col("variance_running")).alias("log_variance"),
        (F.col("step_running") + F.col("waited_us") * F.col("survival")).alias("mean_wait_us"),
    )


def timeouts(curves: DataFrame, shares: Sequence[float]) -> DataFrame:
    """Find the timeouts by which the given shares would complete, on each curve.

    ``operations``, ``waited_in_all_us``, ``followed_us``, ``known_share``
        the number of operations, their waits added up, the longest wait, and the share that completes within
        the longest wait
    ``settled_us``
        the wait by which the curve has settled: with a confidence of 97.5 %, at most UNSETTLED of the
        operations that complete within the longest wait complete later. Null if fewer than 3,921
        operations have completed, because then the wait is not known
    ``timeout_us``, ``timeout_low_us``, ``timeout_high_us``
        the timeout and its confidence interval, in microseconds. Null if the curve ends before it reaches the
        share: the timeout is not identifiable beyond ``followed_us``
    ``naive_us``
        the percentile of completed operations, for comparison. It is too short, because it ignores censored
        operations
    """
    strata = curves.groupBy("stratum").agg(
        F.sum("ended").alias("operations"),
        F.sum(F.col("ended") * F.col("waited_us")).alias("waited_in_all_us"),
        F.max("waited_us").alias("followed_us"),
        (1 - F.min("survival")).alias("known_share"),
        F.sum("completed").alias("completions"),
    )
    low = F.coalesce("survival_low", "survival")
    settled = F.col("known_share") * (1 - _unsettled(F.col("completions")))
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
        curves.join(F.broadcast(strata.select("stratum", "completions", "known_share")), "stratum")
        .groupBy("stratum")
        .agg(
            _first(1 - F.col("survival") >= settled - EXACTNESS).alias("settled_us"),
            F.array(*readings).alias("readings"),
        )
        .select("stratum", "settled_us", F.inline("readings"))
    )
    return strata.drop("completions").join(read, "stratum")


def _unsettled(completions: Column) -> Column:
    """The recorded share of late completions up to which the true share is at most UNSETTLED.

    Null if there are too few completions.

    A number k from a Poisson distribution has the upper bound (sqrt(k + 1) + z / 2) squared, to within 7 %.
    """
    most = F.pow(F.sqrt(completions * UNSETTLED) - Z / 2, 2) - 1
    return F.when(completions * UNSETTLED >= (1 + Z / 2) ** 2, most / completions)


def _running(frame: DataFrame, *columns: str) -> DataFrame:
    return running_sum(frame, order_by=["waited_us"], value_columns=list(columns), within=["stratum"])


def _unless_last(term: Column) -> Column:
    return F.when(F.col("completed") < F.col("at_risk"), term).otherwise(0.0)


def _bound(bound: Column) -> Column:
    """The bound; null where the curve is zero, and 1 where no operation has completed yet."""
    return F.when(F.col("survival") > 0, F.when(F.col("log_running") < 0, bound).otherwise(1.0))


def _first(condition: Column) -> Column:
    return F.min(F.when(condition, F.col("waited_us")))
