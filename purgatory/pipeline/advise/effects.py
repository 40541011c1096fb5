"""What other timeouts would do, by the curves of `survival`."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from purgatory.pipeline.advise.survival import Z


def effects(curves: DataFrame, timeouts: DataFrame) -> DataFrame:
    """Find out what each of the given timeouts would do. `timeouts` has ``stratum`` and ``timeout_us``.

    ``completes``, ``completes_low``, ``completes_high``
        the share that completes within the timeout, and its 95 % confidence interval. The upper bound is 1 if
        no operation waited for this long. It is exact (Clopper-Pearson) if no operation completed
    ``more_completed``, ``more_completed_low``, ``more_completed_high``
        how many more of the recorded operations would have completed, and the 95 % confidence interval of
        this number; negative if fewer
    ``waited_less_us``
        how many microseconds less all operations together would have waited; negative if more

    Operations that waited for longer than the timeout would have ended at the timeout; that is known.
    Operations that expired earlier would have continued. The curve says how many of them would have completed
    by the timeout, and when. The interval says how certain this number is. All other operations stay as they
    were. Nothing is extrapolated: if some operations would have continued beyond the longest wait, the effect
    is null.
    """
    wait, timeout = F.col("waited_us"), F.col("timeout_us")
    reached = wait <= timeout
    # Expired operations were at risk, so the curve is above zero there.
    reopened = (wait < timeout) & (F.col("expired") > 0)
    per_survivor = F.col("expired") / F.col("survival")
    # Waits are unique within a curve, so the greatest of these structs has the longest wait.
    last = F.struct("waited_us", "at_risk", "survival", "survival_low", "mean_wait_us", "log_variance")
    bounded = F.struct("waited_us", "survival_high")
    found = (
        curves.join(F.broadcast(timeouts.distinct()), "stratum")
        .groupBy("stratum", "timeout_us")
        .agg(
            F.max(F.when(reached, last)).alias("last"),
            # The curve falls, so an upper bound holds for all longer waits, too.
            F.max(F.when(reached & F.col("survival_high").isNotNull(), bounded)).alias("bounded"),
            F.max(wait).alias("followed_us"),
            _sum_where(wait >= timeout, F.col("ended")).alias("waited_for_it"),
            _sum_where(~reached, F.col("completed")).alias("cut_off"),
            _sum_where(~reached, F.col("ended") * (wait - timeout)).alias("spared_us"),
            _sum_where(reopened, F.col("expired")).alias("reopened"),
            _sum_where(reopened, per_survivor).alias("survivors"),
            _sum_where(reopened, per_survivor * F.col("mean_wait_us")).alias("survivors_waited_us"),
            F.min(F.when(reopened, F.col("log_variance"))).alias("first_variance"),
        )
        .withColumn("survival", F.coalesce("last.survival", F.lit(1.0)))
        # Where the curve is zero, all n operations at risk have completed at once. If each completes with a
        # probability below the n-th root of 2.5 %, the probability of this is below 2.5 %. So 1 minus this
        # root is the upper bound of the curve.
        .withColumn(
            "of_zero", F.when(F.col("survival") == 0, 1 - F.pow(F.lit(0.025), 1 / F.col("last.at_risk")))
        )
        .withColumn("highest", F.coalesce(F.least("bounded.survival_high", "of_zero"), F.lit(1.0)))
        .withColumn(
            "mean_wait_us",
            F.coalesce("last.mean_wait_us", F.lit(0.0))
            + (timeout - F.coalesce("last.waited_us", F.lit(0))) * F.col("survival"),
        )
    )
    followed = timeout <= F.col("followed_us")
    # If each of n operations completes by the timeout with a probability p, none of them does so with the
    # probability (1 - p) to the power of n. This is 2.5 % at the upper bound.
    of_none = F.when(F.col("survival") == 1, F.pow(F.lit(0.025), 1 / F.col("waited_for_it")))
    lowest = F.when(followed, F.coalesce(of_none, "last.survival_low", "survival")).otherwise(0.0)
    # The number of continued operations that would still not have completed. Its uncertainty grows with the
    # distance from the wait of the expired operation to this timeout. So all operations get the interval of
    # the operations that expired first.
    left = F.col("survival") * F.col("survivors")
    factor = F.exp(Z * F.sqrt(F.col("last.log_variance") - F.col("first_variance")))
    most_left = F.coalesce(left * factor, F.col("highest") * F.col("survivors"))
    known = followed | (F.col("reopened") == 0)
    changes = {
        "more_completed": F.col("reopened") - left - F.col("cut_off"),
        "more_completed_low": F.col("reopened") - F.least(most_left, "reopened") - F.col("cut_off"),
        "more_completed_high": F.col("reopened") - F.coalesce(left / factor, left) - F.col("cut_off"),
        "waited_less_us": F.col("spared_us")
        - F.col("mean_wait_us") * F.col("survivors")
        + F.col("survivors_waited_us"),
    }
    return found.select(
        "stratum",
        "timeout_us",
        (1 - F.col("survival")).alias("completes"),
        (1 - F.col("highest")).alias("completes_low"),
        (1 - lowest).alias("completes_high"),
        *(F.when(known, change).alias(name) for name, change in changes.items()),
    )


def _sum_where(condition: Column, value: Column) -> Column:
    return F.sum(F.when(condition, value).otherwise(0).cast("double"))
