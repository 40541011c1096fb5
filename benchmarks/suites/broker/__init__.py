"""The example broker beside librdkafka's mock cluster, which is C.

Both are clusters of three brokers in one process (`clusters`), apart from the process that measures. The
same client with the same settings measures both: how long a waiting consumer waits for a record once it is
produced (`wake`), how many records can be produced with acks=all (`throughput`), and the cost of a thousand
consumers that wait for nothing (`idle`). Clusters are started anew for each measurement.

The mock cluster is no broker. librdkafka tests itself against it: it acknowledges records that it has not
replicated, keeps the last 5 MB of a partition, and lets a fetch wait its full time whatever comes in. Here it
shows what the client and the machine could do if the broker took no time.
"""

from benchmarks.harness.setting import Entry
from benchmarks.suites.broker.idle import idle
from benchmarks.suites.broker.records import throughput, wake

BENCHMARKS = {
    "wake": Entry(wake, (20,), (100,)),
    "throughput": Entry(throughput, (50_000,), (200_000,)),
    "idle-consumers": Entry(idle, (1_000,), (1_000,)),
}
