"""The instants at which an operation started and ended."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import Column
from pyspark.sql import functions as F

MINUTE_US: Final = 60_000_000


def ended() -> Column:
    """The instant at which the operation of a row ended."""
    return F.timestamp_micros(F.unix_micros("started") + F.col("waited_us"))


def started_us(operations: pa.Table) -> NDArray[np.int64]:
    """When each operation started, in microseconds since 1970."""
    started: NDArray[np.int64] = operations["started"].cast(pa.int64()).to_numpy()
    return started


def ended_us(operations: pa.Table) -> NDArray[np.int64]:
    """When each operation ended, in microseconds since 1970."""
    waited: NDArray[np.int64] = operations["waited_us"].to_numpy()
    return started_us(operations) + waited
