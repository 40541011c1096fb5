"""Draws the pages and pictures of docs/benchmarks from recorded runs: ``python -m benchmarks report --help``.

`site` has the command and the index, `benchmark_page` and `load_page` the other pages; `ratio_chart` and
`growth_chart` draw the pictures on them, with what `picture` and `axes` have for all.
"""
