"""Windows in a batch. `test_job` tests them in a stream."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from purgatory.observer import OUTCOMES
from purgatory.pipeline.schemas import OPERATION_COLUMNS, OPERATIONS_TABLE
from purgatory.pipeline.summarize.minutes import MINUTES
from purgatory.pipeline.watch.windows import windows
from tests.pipeline.journals import NOON, operation, segment
from tests.pipeline.parts import result

ROWS: Final[list[dict[str, Any]]] = [
    operation(
        number,
        kind="AB"[number % 2],
        started=NOON + timedelta(seconds=number * 7 % 100),
        waited_us=number**4,
        lateness_us=number if number % 3 else None,
        outcome=OUTCOMES[number % 4],
        tries=number,
    )
    for number in range(1, 90)
]


def test_windows_of_a_minute_equal_the_table_of_minutes(spark: SparkSession) -> None:
    operations = spark.createDataFrame(ROWS, OPERATION_COLUMNS)
    found = windows(operations, length_ms=60_000, lateness_ms=0)
    same = found.withColumnRenamed("start", "minute").drop("end", "latest").toArrow()
    expected = result(MINUTES, segment(OPERATIONS_TABLE.name, ROWS))
    assert same.column_names == expected.column_names
    order = [(name, "ascending") for name in ("minute", "purgatory", "kind")]
    for own, other in zip(same.sort_by(order).to_pylist(), expected.sort_by(order).to_pylist(), strict=True):
        assert own.pop("minute") == other.pop("minute")
        assert own == pytest.approx(other)


def test_a_window_includes_its_start_and_excludes_its_end(
    spark: SparkSession,
) -> None:
    ends = [0, 2_499_999, 2_500_000, 4_999_999]
    operations = spark.createDataFrame([operation(waited_us=end) for end in ends], OPERATION_COLUMNS)
    instants = [
        ((F.unix_micros(name) - int(NOON.timestamp()) * 1_000_000) / 1e6).alias(name)
        for name in ("start", "end", "latest")
    ]
    found = windows(operations, length_ms=2500, lateness_ms=0).select(*instants, "operations")
    assert sorted(tuple(row) for row in found.collect()) == [
        (0.0, 2.5, 2.499999, 2),
        (2.5, 5.0, 4.999999, 2),
    ]
