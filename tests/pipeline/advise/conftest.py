"""Operations of which only the waits and outcomes matter."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest
from pyspark.sql import DataFrame, SparkSession

# Subject, wait in microseconds, outcome.
Wait = tuple[str, int, str]


@pytest.fixture(scope="session")
def waits(spark: SparkSession) -> Callable[[Iterable[Wait]], DataFrame]:
    """Makes operations; those that expired did so by their timeout."""

    def make(rows: Iterable[Wait]) -> DataFrame:
        return spark.createDataFrame(
            [
                (stratum, wait, outcome, 0 if outcome == "expired" else None)
                for stratum, wait, outcome in rows
            ],
            "stratum string, waited_us long, outcome string, lateness_us long",
        )

    return make
