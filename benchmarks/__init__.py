"""Measures this library beside its alternatives: ``python -m benchmarks --help``.

`command` lists the suites. `suites` has one module or package for each, `designs` the older designs that are
compared, as small libraries, and `harness` what measures, records and reports, whatever the benchmark.
"""
