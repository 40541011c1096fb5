"""The placement of the replicas of new partitions on the brokers."""

from collections.abc import Iterable, Iterator, Sequence, Set

from examples.broker.metadata import PartitionState


def place(
    live: Sequence[int], fenced: Sequence[int], partitions: int, replication_factor: int, start: int
) -> tuple[tuple[int, ...], ...]:
    """Return the replicas of each partition, the preferred leader first.

    The live brokers lead in turn, from the one at ``start`` on. The followers of one leader's partitions are
    spread over all other brokers, so that these share its load when it fails (Kafka's AdminUtils). Fenced
    brokers are used when there are too few live ones, as in KRaft's StripedReplicaPlacer.
    """
    return tuple(
        (*_rotation(live, start + partition), *fenced)[:replication_factor] for partition in range(partitions)
    )


def first_states(replicas: Iterable[tuple[int, ...]], live: Set[int]) -> tuple[PartitionState, ...]:
    """Return the states of new partitions: the first live replica leads, and all live ones are in sync."""
    in_sync = [(each, tuple(replica for replica in each if replica in live)) for each in replicas]
    return tuple(PartitionState(each, living, living[0]) for each, living in in_sync)


def _rotation(brokers: Sequence[int], position: int) -> Iterator[int]:
    """Return all brokers: first the leader in turn, then the others, shifted by one in each round."""
    rounds, leader = divmod(position, len(brokers))
    yield brokers[leader]
    others = len(brokers) - 1
    for follower in range(others):
        yield brokers[(leader + 1 + (rounds + follower) % others) % len(brokers)]
