"""The example broker beside librdkafka's mock cluster, which is C: ``python -m benchmarks.broker --help``.

Both are `clusters` of three brokers in one process, apart from the one that measures, and both are asked the
same by the same client with the same settings: how long a waiting consumer waits for a record once it is
produced (`wake`), how much can be produced with acks=all (`throughput`), and what a thousand consumers cost
that wait for nothing (`idle`). Clusters are started anew for each measurement, and measured in turns.

The mock cluster is no broker. It is what librdkafka tests itself against: it acknowledges what it has not
replicated, keeps the last 5 MB of a partition, and lets a fetch wait out its time whatever comes in. What it
is good for here is to show what the client and the machine could do if the broker took no time.
"""
