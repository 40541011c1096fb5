"""What the pipeline's tests share: one Spark session, since it takes seconds to start one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from purgatory.pipeline.session import spark_session
from tests.pipeline.settings import SETTINGS


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """On two threads of this machine; frames are small, so they are cut into two."""
    with spark_session("local[2]", "purgatory tests", settings=SETTINGS) as session:
        yield session
