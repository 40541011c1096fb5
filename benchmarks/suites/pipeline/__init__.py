"""The Spark pipeline as journals grow, and DuckDB beside it."""

from benchmarks.suites.pipeline.suite import run

__all__ = ["run"]
