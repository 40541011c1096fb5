"""Measures benchmarks, records and reports their figures.

`benchmark` has the options of a run, and benchmarks with their cases and tables. `worker` measures a case in
a process of its own, with the build of the core that it needs (`processes`). `tables` prints the figures,
`record` keeps them as JSON, and `report` draws pages of them.
"""
