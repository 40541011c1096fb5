"""Frames of a few rows with default values. Times are in seconds after noon of a day."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from itertools import count
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import TimestampType

from purgatory.journal.schema import (
    CHECKS,
    CHECKS_SCHEMA,
    COMPLETED,
    GAPS,
    GAPS_SCHEMA,
    OPERATIONS_SCHEMA,
)
from tests.pipeline.journals import NOON, ROWS, Row, operation

Table = Callable[..., DataFrame]


def _table(spark: SparkSession, schema: pa.Schema, defaults: Callable[[], Row]) -> Table:
    def make(*rows: Row) -> DataFrame:
        return spark.createDataFrame(
            [_with_instants(defaults() | row) for row in rows], from_arrow_schema(schema)
        )

    def _with_instants(row: Row) -> Row:
        instants = [field.name for field in schema if pa.types.is_timestamp(field.type)]
        return row | {name: NOON + timedelta(seconds=row[name]) for name in instants}

    return make


@pytest.fixture(scope="session")
def operations(spark: SparkSession) -> Table:
    """Makes operations that start at noon and complete at their second try, a second later."""
    ids = count()
    return _table(
        spark,
        OPERATIONS_SCHEMA,
        lambda: operation(
            next(ids),
            started=0,
            timeout_us=None,
            waited_us=1_000_000,
            lateness_us=None,
            outcome=COMPLETED,
            tries=2,
        ),
    )


@pytest.fixture(scope="session")
def checks(spark: SparkSession) -> Table:
    """Makes checks at noon that try one operation each and complete none."""
    return _table(
        spark,
        CHECKS_SCHEMA,
        lambda: ROWS[CHECKS] | {"checked": 0, "tried": 1, "completed": 0},
    )


@pytest.fixture(scope="session")
def gaps(spark: SparkSession) -> Table:
    """Makes gaps of one operation, which last a second from noon."""
    return _table(
        spark,
        GAPS_SCHEMA,
        lambda: ROWS[GAPS] | {"began": 0, "ended": 1, "lost_operations": 1},
    )


@pytest.fixture(scope="session")
def collected() -> Callable[[DataFrame], list[Mapping[str, Any]]]:
    """Collects the rows of a frame in a fixed order, with instants in seconds after noon."""

    def collect(frame: DataFrame) -> list[Mapping[str, Any]]:
        instants = [field.name for field in frame.schema if field.dataType == TimestampType()]
        since_noon = (
            frame.withColumns(
                {name: F.unix_micros(name) / 1e6 - F.lit(NOON.timestamp()) for name in instants}
            )
            if instants
            else frame
        )
        return sorted(
            (row.asDict() for row in since_noon.collect()), key=lambda row: repr(list(row.values()))
        )

    return collect
