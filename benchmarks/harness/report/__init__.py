"""Draws the pages and charts of docs/benchmarks from recorded runs: ``python -m benchmarks report --help``.

`site` has the command and the index, `benchmark_page` and `load_page` the pages, and `charts` the charts.
"""
