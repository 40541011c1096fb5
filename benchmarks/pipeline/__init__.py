"""What the pipeline takes as journals grow, and DuckDB beside it: ``python -m benchmarks.pipeline --help``.

`case` says which journals, `steps` takes one through the pipeline and `yardstick` through DuckDB, each in a
process of its own whose `usage` is measured; `agreement` compares what they found, `findings` is what comes
out. It needs the extra ``spark-benchmarks``.
"""
