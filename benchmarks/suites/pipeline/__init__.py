"""The Spark pipeline as journals grow, and DuckDB beside it.

`suite` runs the steps of the pipeline (`steps`), and DuckDB's summaries of the same dataset
(`duckdb_tables`), each in a process of its own whose processor time and memory `usage` measures.
`agreement` compares the tables of both.
"""

from benchmarks.suites.pipeline.suite import run

__all__ = ["run"]
