"""The load test of Kafka's timing wheels, for asyncio: ``python -m benchmarks.load --help``.

The design note "Apache Kafka, Purgatory, and Hierarchical Timing Wheels" (Confluent, 2015) compares the
request purgatory of Kafka 0.8 with the one on timing wheels by Kafka's own `kafka.TestPurgatoryPerformance`.
Requests arrive as a Poisson process, whatever has become of those before; the time each takes to complete
is log-normal, given by its median and third quartile; those not complete within the timeout expire. The rate
is raised until the purgatory falls behind.

What that test does, read in its source (core/src/test/scala/other/kafka in apache/kafka), is done here, too:

- All requests watch the same keys, so a watch list holds everything that is pending.
- Completing a request completes that operation itself (`forceComplete`). No key is checked.
- Only what completes before its timeout is handed to the source of completions.

Where it differs: arrivals and completions are drawn before the run, the same for all designs (`plan`); one
event loop does what three threads do there; and a run that has fallen behind is cut short (`generator`).

A `subject` is a design under load, a `trial` one measurement of it, in a process of its own (`worker`). A
`contestant` is what the `sweep` has measured at ever higher rates; one of them is Kafka itself
(`kafka_jvm`, from the package that `kafka_package` fetches).
"""
