"""DuckDB's tables of a journal, and the comparison with the pipeline's."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from benchmarks.suites import pipeline
from benchmarks.suites.pipeline import BIN, TABLES, check
from purgatory.journal import schema

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
NOON_US = int(NOON.timestamp()) * 1_000_000
MINUTE = NOON_US // 60_000_000

Rows = list[dict[str, Any]]


def operation(number: int, began_s: float, waited_s: float, **others: Any) -> dict[str, Any]:
    outcome = others.get("outcome", "completed")
    return {
        "node": "a",
        "purgatory": "fetch",
        "operation_id": number,
        "kind": "Fetch",
        "keys": ["k"],
        "started": NOON_US + round(began_s * 1e6),
        "timeout_us": 1,
        "waited_us": round(waited_s * 1e6),
        "lateness_us": 5 if outcome == "expired" else None,
        "outcome": outcome,
        "tries": 2,
        **others,
    }


def write(journal: Path, name: str, rows: Rows) -> None:
    folder = journal / name
    folder.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(rows, schema.SCHEMAS[name]), folder / "1.parquet")


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """DuckDB's tables of three operations and two checks, a duplicate, and a malformed row of each."""
    directory = tmp_path_factory.mktemp("duckdb")
    operations = [
        operation(1, 0, 30, keys=["k", "other", "k"]),
        operation(2, 0, 60, outcome="expired", tries=5),
        operation(3, 10, 20),
        operation(3, 10, 20),
        operation(4, 10, 20, tries=0),
    ]
    checked = {"node": "a", "purgatory": "fetch", "key": "k", "checked": NOON_US}
    write(directory / "journal", schema.OPERATIONS, operations)
    counts = ((1, 1), (4, 0), (1, 2))
    checks = [{**checked, "tried": tried, "completed": completed} for tried, completed in counts]
    write(directory / "journal", schema.CHECKS, checks)
    journal, clean, tables = (str(directory / name) for name in ("journal", "clean", "tables"))
    pipeline.compact(journal, clean, str(directory), "100m")
    pipeline.summarize_compacted(clean, tables, str(directory), "100m")
    return directory


def test_malformed_rows_are_in_a_quarantine_and_all_rows_are_counted(directory: Path) -> None:
    found = [(row["position"], row["reason"]) for row in rows(directory / "clean", "quarantine")]
    assert sorted(found) == [(2, "completed is more than tried"), (4, "tries is below 1")]
    counts = [(row["rows"], row["quarantined"]) for row in rows(directory / "clean", "segments")]
    assert sorted(counts) == [(3, 1), (5, 1)]


def rows(tables: Path, name: str) -> Rows:
    found: Rows = pq.read_table(tables / f"{name}.parquet").to_pylist()
    return sorted(found, key=lambda row: [str(value) for value in row.values()])


def as_of_the_pipeline(tables: Path, summaries: Path, **changed: Any) -> Path:
    """The same, with timestamps for minutes, marks for gaps, and something changed in the first minute."""
    for name in TABLES:
        found = rows(tables, name)
        for row in found:
            if "minute" in row:
                row["minute"] = datetime.fromtimestamp(row["minute"] * 60, UTC)
                row["incomplete"] = False
        if name == "minutes":
            found[0] |= changed
        write_deltalake(summaries / name, pa.Table.from_pylist(found))
    return summaries


def test_what_is_equal_or_in_the_same_bin_is_the_same(directory: Path, tmp_path: Path) -> None:
    tables = directory / "tables"
    check(as_of_the_pipeline(tables, tmp_path, wait_p50_us=25e6 * (1 - 0.9 * BIN)), tables)


@pytest.mark.parametrize(
    ("changed", "difference"),
    [
        ({"wait_p50_us": 25e6 * (1 - 1.1 * BIN)}, "wait_p50_us"),
        ({"wait_p50_us": 25e6 + 1}, "wait_p50_us"),
        ({"operations": 3}, "operations"),
        ({"tries_per_operation": 2.000001}, "tries_per_operation"),
        ({"lateness_p99_us": 0.0}, "lateness_p99_us"),
        ({"kind": "Fetched"}, "Fetched"),
    ],
    ids=str,
)
def test_all_else_is_a_disagreement(
    directory: Path, tmp_path: Path, changed: dict[str, Any], difference: str
) -> None:
    tables = directory / "tables"
    with pytest.raises(RuntimeError, match=f"(?s)minutes: .*{difference}"):
        check(as_of_the_pipeline(tables, tmp_path, **changed), tables)
