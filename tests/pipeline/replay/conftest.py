"""Waits on wheels, as the replay reads them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest
from pyspark.sql import DataFrame, SparkSession

from purgatory.pipeline.replay.reaper import Wait

WheelWaits = Callable[[Iterable[tuple[str, Wait]]], DataFrame]


@pytest.fixture(scope="session")
def wheel_waits_of(spark: SparkSession) -> WheelWaits:
    """Makes a frame of waits on the wheels of purgatories, all on node n."""

    def make(waits: Iterable[tuple[str, Wait]]) -> DataFrame:
        return spark.createDataFrame(
            [("n", purgatory, *wait) for purgatory, wait in waits],
            "node string, purgatory string, entered_us long, deadline_us long, left_us long",
        )

    return make
