"""Measures benchmarks, records and reports their figures. Knows no benchmark itself.

`benchmark` defines benchmarks, cases and tables; `setting` holds the options of a run. `interleaving` takes
the cases in turns, each in a process of its own (`worker`) with the build of the core that it needs
(`processes`). `tables` prints the figures, `record` keeps them as JSON, and `report` draws pages of them.
"""
