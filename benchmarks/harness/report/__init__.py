"""Draws the pages of docs/benchmarks from recorded runs: ``python -m benchmarks report --help``."""
