"""Compares the pipeline's tables with DuckDB's."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

# The pipeline's quantiles are too low by less than this share (`purgatory.pipeline.transforms.quantiles`).
BIN = 1e-3
# Sums of floats, in another order.
_ROUNDING = 1e-9

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Table:
    identity: tuple[str, ...]
    # All other columns have to be equal.
    binned: tuple[str, ...] = ()
    rounded: tuple[str, ...] = ()


_WAITS = ("wait_p50_us", "wait_p90_us", "wait_p99_us", "wait_p999_us")
TABLES = {
    "minutes": _Table(
        ("minute", "purgatory", "kind"), (*_WAITS, "lateness_p99_us"), ("tries_per_operation",)
    ),
    "pending": _Table(("minute", "purgatory", "kind"), rounded=("pending_mean",)),
    "hottest_keys": _Table(("purgatory", "by", "rank")),
    "fan_out": _Table(("minute", "purgatory"), binned=("tried_p50", "tried_p99")),
}


class Disagreement(RuntimeError):
    """Raised when the tables differ; with the first differences."""


def check(summaries: Path, duckdb_tables: Path) -> int:
    """Compare the pipeline's tables with DuckDB's; how many rows they have. Raises Disagreement."""
    rows = 0
    differences: list[str] = []
    for name, table in TABLES.items():
        found = _rows(pq.read_table(summaries / name).to_pylist(), table.identity)
        right = _rows(pq.read_table(duckdb_tables / f"{name}.parquet").to_pylist(), table.identity)
        rows += len(right)
        differences += (f"{name}: {each}" for each in _differences(table, found, right))
    if differences:
        raise Disagreement("\n".join(differences[:10]))
    return rows


def _rows(rows: Sequence[Row], identity: Sequence[str]) -> Mapping[tuple[Any, ...], Row]:
    return {tuple(_plain(row[name]) for name in identity): row for row in rows}


def _plain(value: Any) -> Any:
    """Minutes as DuckDB has them: since 1970."""
    return (value - _EPOCH) // timedelta(minutes=1) if isinstance(value, datetime) else value


def _differences(
    table: _Table, found: Mapping[tuple[Any, ...], Row], right: Mapping[tuple[Any, ...], Row]
) -> Iterator[str]:
    for identity in sorted(found.keys() - right.keys()) + sorted(right.keys() - found.keys()):
        yield f"{identity} is known to {'the pipeline' if identity in found else 'DuckDB'} alone"
    for identity in found.keys() & right.keys():
        for name, value in right[identity].items():
            own = found[identity][name]
            if name not in table.identity and not _agree(table, name, own, value):
                yield f"{name} of {identity} is {own}, and to DuckDB {value}"


def _agree(table: _Table, name: str, own: Any, right: Any) -> bool:
    if own is None or right is None:
        return own is right
    if name in table.binned:
        return bool(right * (1 - BIN) - _ROUNDING <= own <= right * (1 + _ROUNDING))
    if name in table.rounded:
        return math.isclose(own, right, rel_tol=_ROUNDING, abs_tol=_ROUNDING)
    return bool(own == right)
