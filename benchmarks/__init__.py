"""Measurements of this library side by side with what people use instead: ``python -m benchmarks --help``.

`question` says what a measurement is, `setting` what is the same for all of a run, `catalogue` which there
are. `interleaving` takes them in turns, each in a process of its own (`worker`) with the build of the core
that it is about (`builds`); `tables` and `record` show and keep the figures, `report` makes pages of them.

`constructs` are the ways to wait that are compared, `designs` the older ones among them as small libraries.
Each other module asks one question, or helps several to (`waits`, `sizes`, `expiring`, `heartbeat`,
`collector_setting`, `stand_ins`), or is run by hand: to choose one of the core's constants (`wheel_size`,
`watch_lists`), or for the advice on the garbage collector (`collector`). `load` is the load test;
`broker` compares the broker example with librdkafka's mock cluster, `longpoll` long polls over HTTP with the
usual way of writing them, `pipeline` the Spark pipeline at several sizes with DuckDB. `timeouts` compares
what the pipeline's advisor finds with what is true; `dashboard` measures a view of the dashboard's page.
"""
