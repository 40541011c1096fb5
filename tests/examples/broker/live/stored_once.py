"""What the log of one partition may hold of the numbers that an idempotent producer wrote in ascending order.

The broker stores every batch of a producer epoch once and in order (KIP-98). A batch that the client sends
again in a new epoch is another batch to it, as to Kafka. A client that begins no new epochs therefore has
each number stored once.

librdkafka begins new epochs (librdkafka#4953): when a new leader refuses a batch, because those before it are
missing, and when it gives up records. In the new epoch it sends again all that is not acknowledged, even what
an earlier leader has stored. So a number may be there once for each epoch. The last copy is the acknowledged
one, and the last copies are in order.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from kio.records.readers import read_batch

from examples.broker.storage.record_batch import ProducerSequence, RecordBatch
from tests.examples.broker.live.idempotent_writers import Writer
from tests.examples.broker.live.live_cluster import LiveCluster

Epoch = tuple[int, int]
"""A producer id and its epoch. A later epoch is larger."""


def check_partition(cluster: LiveCluster, partition: int, writer: Writer) -> tuple[dict[int, int], list[str]]:
    """Return the numbers that the leader stores, by offset, and the faults of its log and of the replicas."""
    logs = cluster.stored_logs(writer.topic, partition)
    leader = cluster.leader_of(writer.topic, partition)
    numbers = {
        batch.base_offset + index: int(record.value or b"")
        for batch in logs[leader]
        for index, record in enumerate(read_batch(batch.data, 0)[0].records)
    }
    acknowledged = writer.acknowledged.get(partition, {})
    faults = [
        *find_faults(numbers, logs[leader], acknowledged, begins_new_epochs=writer.begins_new_epochs),
        *_find_differences(logs, leader),
    ]
    return numbers, [f"partition {partition}: {fault}" for fault in faults]


def find_faults(
    stored: Mapping[int, int],
    batches: Sequence[RecordBatch],
    acknowledged: Mapping[int, int | None],
    *,
    begins_new_epochs: bool,
) -> Iterator[str]:
    """Return the faults of a log whose first records were never deleted.

    ``stored`` has the numbers by offset, ``acknowledged`` the offsets by number, or None when the client does
    not know the offset. ``batches`` is the log.
    """
    if list(stored) != list(range(len(stored))):
        yield f"there are gaps between the offsets {list(stored)}"
    last_copies = {number: offset for offset, number in stored.items()}
    for number, offset in acknowledged.items():
        if number not in last_copies or offset not in (None, last_copies[number]):
            yield f"{number}, acknowledged at {offset}, is at {last_copies.get(number)}"
    in_order = sorted(last_copies, key=last_copies.__getitem__)
    yield from (f"{later} comes after {earlier}" for earlier, later in pairwise(in_order) if later < earlier)
    epochs = {
        offset: _epoch(batch) for batch in batches for offset in range(batch.base_offset, batch.next_offset)
    }
    copies = Counter((epochs[offset], number) for offset, number in stored.items())
    yield from (
        f"{number} is stored {times} times in epoch {epoch}"
        for (epoch, number), times in copies.items()
        if times > 1
    )
    yield from _find_broken_sequences(batches, begins_new_epochs)


def _find_differences(logs: Mapping[int, Sequence[RecordBatch]], leader: int) -> Iterator[str]:
    """Return the differences between the replicas' logs and the leader's."""
    for broker_id, log in logs.items():
        if log != logs[leader]:
            yield (
                f"broker {broker_id} stores {len(log)} batches, of which "
                f"{len(set(log) - set(logs[leader]))} are not the leader's {len(logs[leader])}"
            )


def _find_broken_sequences(batches: Sequence[RecordBatch], begins_new_epochs: bool) -> Iterator[str]:
    """Return the batches that do not continue their epoch, and the epochs that may not begin there."""
    epoch: Epoch | None = None
    expected = 0
    for batch in batches:
        sequence = _sequence(batch)
        if _epoch(batch) != epoch:
            begun, epoch, expected = epoch, _epoch(batch), 0
            if begun is not None and (not begins_new_epochs or epoch < begun):
                yield f"epoch {epoch} begins at {batch.base_offset}, after {begun}"
        if sequence.first_sequence != expected:
            yield f"{sequence} is at {batch.base_offset}, but the next sequence is {expected}"
        expected = sequence.last_sequence + 1


def _epoch(batch: RecordBatch) -> Epoch:
    sequence = _sequence(batch)
    return sequence.producer_id, sequence.producer_epoch


def _sequence(batch: RecordBatch) -> ProducerSequence:
    assert batch.producer is not None, f"the batch at {batch.base_offset} has no sequence"
    return batch.producer
