"""Which brokers hold which partition of a new topic."""

from collections.abc import Iterator, Sequence


def place(
    live: Sequence[int], fenced: Sequence[int], partitions: int, replication_factor: int, start: int
) -> tuple[tuple[int, ...], ...]:
    """The replicas of each partition, preferred leader first.

    Leaderships go round the live brokers, from the one at ``start``. A broker's own partitions have their
    followers in turns on all the others, so that these share its load when it dies (Kafka's AdminUtils). The
    fenced are taken when the live are too few, as in KRaft's StripedReplicaPlacer: they lead later, if ever.
    """
    return tuple(
        (*_around(live, start + partition), *fenced)[:replication_factor] for partition in range(partitions)
    )


def _around(brokers: Sequence[int], position: int) -> Iterator[int]:
    """All brokers: the leader by turns, and behind it the others, shifted by one with every round."""
    rounds, leader = divmod(position, len(brokers))
    yield brokers[leader]
    others = len(brokers) - 1
    for follower in range(others):
        yield brokers[(leader + 1 + (rounds + follower) % others) % len(brokers)]
