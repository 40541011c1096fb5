"""Operations with a stratum, a wait and an outcome."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest
from pyspark.sql import DataFrame, SparkSession

# Stratum, wait in microseconds, outcome.
Wait = tuple[str, int, str]


@pytest.fixture(scope="session")
def waits(spark: SparkSession) -> Callable[[Iterable[Wait]], DataFrame]:
    """Makes a frame of operations. Expired ones expired by their timeout."""

    def make(rows: Iterable[Wait]) -> DataFrame:
        return spark.createDataFrame(
            [
                (stratum, wait, outcome, 0 if outcome == "expired" else None)
                for stratum, wait, outcome in rows
            ],
            "stratum string, waited_us long, outcome string, lateness_us long",
        )

    return make
