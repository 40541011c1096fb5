"""The pipeline's summaries, by DuckDB: ``python -m benchmarks.suites.pipeline.duckdb_tables``.

The SQL that a user with one machine would write is in duckdb_tables.sql.
"""

from __future__ import annotations

import sys
from pathlib import Path

import duckdb

# For Spark and for DuckDB.
THREADS = 2
# The keys of each purgatory that are listed by each measure.
HOTTEST = 20


def main(dataset: str, tables: str, spill: str, memory: str) -> None:
    """Write each table as a Parquet file; what does not fit in memory goes into `spill`."""
    Path(tables).mkdir()
    sql = Path(__file__).with_suffix(".sql").read_text()
    with duckdb.connect() as connection:
        connection.execute(f"SET threads = {THREADS}; SET memory_limit = '{memory}ib'; SET TimeZone = 'UTC'")
        connection.execute(f"SET temp_directory = '{spill}'; SET preserve_insertion_order = false")
        connection.execute(sql.format(dataset=dataset, tables=tables, hottest=HOTTEST))


if __name__ == "__main__":
    main(*sys.argv[1:])
