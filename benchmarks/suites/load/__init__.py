"""The load test of Kafka's timing wheels, for asyncio: requests at ever higher rates.

The design note "Apache Kafka, Purgatory, and Hierarchical Timing Wheels" (Confluent, 2015) compares the
request purgatory of Kafka 0.8 with the one on timing wheels by Kafka's own `kafka.TestPurgatoryPerformance`.
Requests arrive as a Poisson process, whether or not earlier ones have ended. The time to complete one is
log-normal, given by its median and third quartile; requests that take longer than the timeout expire. The
rate is raised until the purgatory falls behind.

This suite does what that test does by its source (core/src/test/scala/other/kafka in apache/kafka):

- All requests watch the same keys, so a watch list holds everything that is pending.
- Completing a request completes that operation itself (`forceComplete`). No key is checked.
- Only requests that complete before their timeout are handed to the source of completions.

It differs in this: arrivals and completions are drawn before the run, the same for all designs (`plan`); one
event loop does the work of three threads; and a run that has fallen behind is cut short (`trial`). `sweep`
measures this library, Kafka's designs in Python and Kafka itself (`kafka_jvm`), each run in a new process.
"""

from benchmarks.suites.load.sweep import run

__all__ = ["run"]
