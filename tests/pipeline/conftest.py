"""One Spark for all tests of the pipeline that a worker runs: it takes seconds to start.

Every test that uses Spark, an object store or a browser is marked slow here, by its fixtures.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from purgatory.pipeline import stores
from purgatory.pipeline.spark import Spark
from tests.pipeline.object_store import environment, new_bucket, served
from tests.pipeline.settings import SETTINGS

SLOW_FIXTURES = frozenset({"spark", "browser", "endpoint"})


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests before pytest deselects them by their marks."""
    for item in items:
        if isinstance(item, pytest.Function) and not SLOW_FIXTURES.isdisjoint(item.fixturenames):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="session")
def spark() -> Iterator[Spark]:
    """Spark on two threads of this machine."""
    with Spark("local[2]", "purgatory tests", settings=SETTINGS) as spark:
        yield spark


@pytest.fixture(scope="session")
def endpoint() -> Iterator[str]:
    """The address of an object store, which takes seconds to start."""
    with served() as address:
        yield address


@pytest.fixture
def bucket(endpoint: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of an empty bucket. This process finds it, and so do the workers of Spark."""
    for name, value in environment(endpoint).items():
        monkeypatch.setenv(name, value)
        if "spark" in request.fixturenames:
            spark: Spark = request.getfixturevalue("spark")
            monkeypatch.setitem(spark.context.environment, name, value)
    stores.client.cache_clear()
    return new_bucket(endpoint)
