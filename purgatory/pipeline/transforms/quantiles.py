"""Quantiles in bounded memory. They do not depend on how Spark splits the work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import Column
from pyspark.sql import functions as F

# The quantiles that are taken, by the names of their columns.
WAITS: Final = {"wait_p50_us": 0.5, "wait_p90_us": 0.9, "wait_p99_us": 0.99, "wait_p999_us": 0.999}
LATENESS: Final = {"lateness_p99_us": 0.99}

# The number of leading bits that a binned number keeps.
_BITS: Final = 11


def binned(amount: Column) -> Column:
    """Round a whole number >= 0 down to eleven bits. The result is at most 0.1 % too low.

    A number below 2048 stays exact. These are the bins of an HDR histogram: 1024 for each doubling. Count
    rows by bin first, and then take quantiles of the counts. This takes one pass and little memory. The
    sketch of ``percentile_approx`` does so, too, but its result depends on the order in which its parts
    arrive.
    """
    # The logarithm of 0 is null, and the greatest of null and 0 is 0.
    excess = F.greatest(F.floor(F.log2(amount)) - F.lit(_BITS - 1), F.lit(0)).cast("int")
    return F.call_function("shiftleft", F.call_function("shiftright", amount, excess), excess)


def bins(amounts: NDArray[np.int64]) -> NDArray[np.int64]:
    """The same as `binned`, in the workers."""
    # The exponent that `frexp` gives is the number of bits of the amount.
    excess = np.maximum(np.frexp(amounts.astype(np.float64))[1] - _BITS, 0)
    binned: NDArray[np.int64] = amounts >> excess << excess
    return binned


def quantiles(amount: Column, named: Mapping[str, float]) -> Sequence[Column]:
    """One column for each named probability.

    Interpolates between neighbouring amounts. Null if there are no amounts.
    """
    return [F.percentile(amount, probability).alias(name) for name, probability in named.items()]
