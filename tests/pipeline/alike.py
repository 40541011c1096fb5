"""Rows of tables that were computed in different ways, and are equal up to the last digits of floats."""

from __future__ import annotations

import math
from typing import Any

from deltalake import DeltaTable

from purgatory.pipeline import locations
from purgatory.pipeline.addresses import delta_uri


def rows(address: str) -> list[dict[str, Any]]:
    """The rows of a table, in an order that does not depend on floats."""
    table = DeltaTable(delta_uri(address), storage_options=dict(locations.delta_options(address)))
    unsorted: list[dict[str, Any]] = table.to_pyarrow_table().to_pylist()
    return sorted(
        unsorted, key=lambda row: [str(value) for value in row.values() if not isinstance(value, float)]
    )


def alike(one: Any, other: Any) -> bool:
    """Whether two values are equal; floats, up to the error of a different order of summation."""
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)
    return bool(one == other)


def assert_alike(found: list[dict[str, Any]], right: list[dict[str, Any]]) -> None:
    assert right
    assert len(found) == len(right)
    for own, other in zip(found, right, strict=True):
        assert own.keys() == other.keys()
        assert all(map(alike, own.values(), other.values())), (own, other)
