"""The pipeline's summaries by DuckDB, and whether they agree with the pipeline's own.

``python -m benchmarks.suites.pipeline.duckdb_tables`` writes them. The SQL that a user with one machine would
write is in duckdb_tables.sql.
"""

from __future__ import annotations

import sys
from pathlib import Path

import duckdb
import pyarrow.parquet as pq

# For Spark and for DuckDB.
THREADS = 2
# The keys of each purgatory that are listed by each measure.
HOTTEST = 20
# The tables, with the columns that identify a row.
TABLES = {
    "minutes": ["minute", "purgatory", "kind"],
    "pending": ["minute", "purgatory", "kind"],
    "hottest_keys": ["purgatory", "by", "rank"],
    "fan_out": ["minute", "purgatory"],
}
# The pipeline's quantiles are too low by less than this share (`purgatory.pipeline.transforms.quantiles`).
BIN = 1e-3
# Sums of floats, in another order.
ROUNDING = 1e-9
# By which share the pipeline may be below DuckDB. All other columns have to be equal.
BELOW = {
    **dict.fromkeys(("wait_p50_us", "wait_p90_us", "wait_p99_us", "wait_p999_us"), BIN),
    **dict.fromkeys(("lateness_p99_us", "tried_p50", "tried_p99"), BIN),
    **dict.fromkeys(("tries_per_operation", "pending_mean"), ROUNDING),
}


def main(dataset: str, tables: str, spill: str, memory: str) -> None:
    """Write each table as a Parquet file; what does not fit in memory goes into `spill`."""
    Path(tables).mkdir()
    sql = Path(__file__).with_suffix(".sql").read_text()
    values = {"dataset": dataset, "tables": tables, "spill": spill, "memory": memory}
    with duckdb.connect() as connection:
        connection.execute(sql.format(**values, threads=THREADS, hottest=HOTTEST))


def check(summaries: Path, tables: Path) -> None:
    """Compare the pipeline's tables with DuckDB's. Raises RuntimeError, with rows that differ."""
    for name, identity in TABLES.items():
        pipeline = pq.read_table(summaries / name).to_pandas()
        if "minute" in identity:
            # To DuckDB minutes are numbers, since 1970.
            pipeline["minute"] = [int(minute.timestamp()) // 60 for minute in pipeline["minute"]]
        duckdb_table = pq.read_table(tables / f"{name}.parquet").to_pandas()
        # A row that only one of both has is null in the other.
        pipeline, duckdb_table = pipeline.set_index(identity).align(duckdb_table.set_index(identity), axis=0)
        for column, right in duckdb_table.items():
            own = pipeline[column]
            if column in BELOW:
                agree = own.between(right * (1 - BELOW[column]) - ROUNDING, right * (1 + ROUNDING) + ROUNDING)
            else:
                agree = own == right
            differ = ~agree & (own.notna() | right.notna())
            if differ.any():
                raise RuntimeError(f"{name}: the pipeline has\n{own[differ]}\nand DuckDB\n{right[differ]}")


if __name__ == "__main__":
    main(*sys.argv[1:])
