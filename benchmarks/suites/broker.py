"""The example broker beside librdkafka's mock cluster, which is C.

Both are clusters of three brokers in one process, apart from the process that measures. The same client with
the same settings measures both: how long a waiting consumer waits for a record once it is produced (`wake`),
and how many records can be produced with acks=all (`throughput`). Clusters are started anew for each
measurement. `partitions` measures the example broker alone.

The mock cluster is no broker. librdkafka tests itself against it: it acknowledges records that it has not
replicated, keeps the last 5 MB of a partition, and lets a fetch wait its full time whatever comes in. Here it
shows what the client and the machine could do if the broker took no time.

``python -m benchmarks.suites.broker`` runs it, in a client that is not used for anything else.
"""

import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial
from itertools import product
from typing import Any

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition

from benchmarks.harness.benchmark import Case, Parts, Sample, Setting, Table, benchmark, percentiles, spreads
from benchmarks.harness.processes import processor_seconds, started

BROKERS = 3
# Of topics that are created automatically; the mock cluster's default.
PARTITIONS = 4
TOPIC = "benchmark"
# Milliseconds: the clients' default, and so short that continuous polling would do as well.
MAX_WAITS = (500, 5)
# Bytes of a record.
RECORD_BYTES = (100, 1000)
# Records between two polls for delivery reports.
BATCH = 1000
# Records, one after the other, and the seconds for which an idle cluster is watched.
RECORDS = 200
IDLE = 10.0
# Seconds for a step that should take no time.
PATIENCE = 60.0
_ADDRESS = "bootstrap.servers="

CLUSTERS = {
    "examples.broker": (
        *("--brokers", str(BROKERS), "--port", "0", "--partitions", str(PARTITIONS)),
        *("--log-level", "warning"),
    ),
    "librdkafka's mock cluster": (),
}


@benchmark("wake", "how long a waiting consumer waits for a record that is produced", (20,), (100,), 600.0)
def wake(setting: Setting) -> Parts:
    """The first size is the number of records, one after the other."""
    wakes = setting.sizes[0]
    yield Table(
        "From produce(), acks=all, to the consumer in a long poll: milliseconds",
        spreads(p50_ms="p50", p99_ms="p99"),
        f"{wakes:,} records, each at a random moment of the poll. The mock cluster wakes "
        "nobody: when fetch.wait.max.ms are over it answers, and the next fetch has the record.",
    )
    for max_wait, name in product(MAX_WAITS, CLUSTERS):
        yield Case(f"fetch.wait.max.ms={max_wait}", name, partial(measure_wake, name, max_wait, wakes))


def measure_wake(name: str, max_wait: int, wakes: int) -> Sample:
    """Milliseconds. Raises RuntimeError when a record is lost."""
    latencies = []
    moments = random.Random(1)
    with running(name) as (_, client_settings):
        producer = Producer({**client_settings, "acks": "all", "linger.ms": 0})
        settings = {"group.id": "none", "enable.auto.commit": False, "fetch.wait.max.ms": max_wait}
        with closing(Consumer({**client_settings, **settings})) as consumer:
            consumer.assign([TopicPartition(TOPIC, 0, 0)])
            for number in range(1 + wakes):
                # A consumer that has a record asks for the next within 10 ms.
                time.sleep(0.01 + moments.uniform(0, max_wait / 1000))
                value = b"%d" % number
                began = time.perf_counter()
                producer.produce(TOPIC, value, partition=0)
                producer.poll(0)
                message = consumer.poll(PATIENCE)
                latencies.append((time.perf_counter() - began) * 1000)
                if message is None or message.error() is not None or message.value() != value:
                    raise RuntimeError(f"{value!r} was produced, {message and message.value()!r} consumed")
                producer.flush(PATIENCE)
    # The first record made the connections.
    return percentiles(latencies[1:])


@benchmark("throughput", "how much is produced with acks=all", (50_000,), (200_000,), 600.0)
def throughput(setting: Setting) -> Parts:
    """The first size is the number of records."""
    records = setting.sizes[0]
    yield Table(
        "Produced with acks=all, linger.ms=5",
        spreads(records_per_second="records/s", mb_per_second="MB/s"),
        f"{records:,} records to a topic of four partitions with three replicas each, until the "
        "last is acknowledged; MB of a million bytes. The mock cluster replicates nothing: its row "
        "is about as much as this client can produce.",
    )
    for length, name in product(RECORD_BYTES, CLUSTERS):
        measured = partial(measure_throughput, name, records, length)
        yield Case(f"records of {length:,} bytes", name, measured)


def measure_throughput(name: str, records: int, length: int) -> Sample:
    """Per second. Raises RuntimeError when a record is not acknowledged."""
    failures: list[KafkaError | None] = []

    def failed(error: KafkaError | None, _: Message) -> None:
        failures.append(error)

    with running(name) as (_, client_settings):
        # Without delivery.report.only.error there would be a call back into Python for each record.
        settings = {"acks": "all", "linger.ms": 5, "delivery.report.only.error": True}
        producer = Producer({**client_settings, **settings})
        value = os.urandom(length)
        # The first record makes the connections.
        producer.produce(TOPIC, value, on_delivery=failed)
        producer.flush(PATIENCE)
        began = time.perf_counter()
        for start in range(0, records, BATCH):
            for _ in range(min(BATCH, records - start)):
                _produce(producer, value, failed)
            producer.poll(0)
        left = producer.flush(PATIENCE)
        took = time.perf_counter() - began
    if left or failures:
        counts = f"{left} records of {records} have no answer, {len(failures)} failed"
        raise RuntimeError(f"{counts}: {failures[:1]}")
    return {"records_per_second": records / took, "mb_per_second": records * length / took / 1e6}


@benchmark("partitions", "what partitions cost that nobody uses", (3, 3_000), (3, 300, 3_000), 600.0)
def partitions(setting: Setting) -> Parts:
    """The sizes are numbers of partitions, with three replicas each."""
    yield Table(
        "Idle partitions: milliseconds from produce(), acks=all, to the answer, and an idle cluster",
        spreads(p50_ms="p50", p99_ms="p99", idle_percent="idle, % of a core"),
        f"{RECORDS:,} records, one after the other, to one of the partitions.",
    )
    for count in setting.sizes:
        yield Case(f"{count:,} partitions", "examples.broker", partial(measure_partitions, count))


def measure_partitions(count: int) -> Sample:
    """Milliseconds, and percent. Raises RuntimeError when a record is not acknowledged."""
    latencies = []
    with running("examples.broker", count) as (process_id, client_settings):
        producer = Producer({**client_settings, "acks": "all", "linger.ms": 0})
        for number in range(RECORDS + 1):
            sent = time.perf_counter()
            producer.produce(TOPIC, b"%d" % number, partition=0)
            if producer.flush(PATIENCE):
                raise RuntimeError(f"record {number} has no answer")
            latencies.append((time.perf_counter() - sent) * 1000)
        # Not before the records: the first second after the creation still has work of it.
        used, began = processor_seconds(process_id), time.perf_counter()
        time.sleep(IDLE)
        idle = (processor_seconds(process_id) - used) / (time.perf_counter() - began)
    # The first record made the connections.
    return percentiles(latencies[1:]) | {"idle_percent": 100 * idle}


def _produce(producer: Producer, value: bytes, failed: Callable[[KafkaError | None, Message], None]) -> None:
    """Produce the record as soon as there is room for it."""
    while True:
        try:
            producer.produce(TOPIC, value, on_delivery=failed)
        except BufferError:
            producer.poll(0.001)
        else:
            return


@contextmanager
def running(name: str, partitions: int = PARTITIONS) -> Iterator[tuple[int, dict[str, Any]]]:
    """A new cluster for a ``with`` block: its process, and the settings of its clients.

    Raises RuntimeError when it does not start, or when the topic gets no leaders.
    """
    module = name if name == "examples.broker" else "benchmarks.suites.broker"
    # The last option counts.
    options = [*CLUSTERS[name], *(("--partitions", str(partitions)) if CLUSTERS[name] else ())]
    with started(module, *options) as (line, process_id):
        # A client logs nothing, as the cluster ends before the client does.
        settings = {
            "bootstrap.servers": line.removeprefix(_ADDRESS),
            "socket.nagle.disable": True,
            "log_level": 0,
        }
        _wait_for_leaders(Producer(settings), partitions)
        yield process_id, settings


def _wait_for_leaders(client: Producer, count: int) -> None:
    """Create the topic, and return when all of its partitions have leaders."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        cluster = client.list_topics(TOPIC, PATIENCE)
        partitions = cluster.topics[TOPIC].partitions.values()
        if len(partitions) == count and all(each.leader in cluster.brokers for each in partitions):
            return
        time.sleep(0.01)
    raise RuntimeError(f"{TOPIC} has no leaders")


def main() -> None:
    """Print the address of a mock cluster, as the example broker does, and serve until terminated."""
    # It logs warnings and worse: not the notice that it is a mock cluster.
    host = Producer({"test.mock.num.brokers": BROKERS, "log_level": 4})
    found = host.list_topics(timeout=30.0).brokers.values()
    print(f"{_ADDRESS}{','.join(f'{broker.host}:{broker.port}' for broker in found)}", flush=True)
    signal.pause()


if __name__ == "__main__":
    main()
