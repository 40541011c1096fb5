"""Measurements of this library side by side with what people use instead: ``python -m benchmarks --help``.

`question` says what a measurement is, `interleaving` runs several fairly, `tables` and `record` show and
keep the figures. `constructs` are the ways to wait that are compared. Each other module asks one question,
or is run by hand: to choose one of the core's constants (`wheel_size`, `watch_lists`), or for the advice
on the garbage collector (`collector`).
"""
