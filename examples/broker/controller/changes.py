"""What differs between two images, as lines for the log."""

from collections.abc import Iterator
from typing import Final

from examples.broker.address import address
from examples.broker.metadata import NO_LEADER, MetadataImage

# A broker that fails may have led thousands of partitions.
_NAMED: Final = 3


def changes(before: MetadataImage, after: MetadataImage) -> Iterator[str]:
    """Return what happened to brokers and topics, and which partitions have another leader.

    Changes of the in-sync replicas are left out: a follower that lags a little leaves and joins again.
    """
    for broker_id, broker in after.brokers.items():
        if broker != before.brokers.get(broker_id):
            state = "is fenced" if broker.fenced else f"is live at {address(broker.host, broker.port)}"
            yield f"broker {broker_id} {state}"
    moved: dict[tuple[int, int], list[str]] = {}
    for name, topic in after.topics.items():
        known = before.topics.get(name)
        if known is None:
            yield f"topic {name!r} is created, partitions: {len(topic.partitions)}"
        elif known is not topic:
            for index, (old, new) in enumerate(zip(known.partitions, topic.partitions, strict=False)):
                if old.leader != new.leader:
                    moved.setdefault((old.leader, new.leader), []).append(f"{name}-{index}")
    for name in before.topics:
        if name not in after.topics:
            yield f"topic {name!r} is deleted"
    for (old_leader, new_leader), partitions in moved.items():
        leader = "nobody" if new_leader == NO_LEADER else f"broker {new_leader}"
        instead = "" if old_leader == NO_LEADER else f", instead of broker {old_leader}"
        yield f"{leader} leads {_listed(partitions)}{instead}"


def _listed(partitions: list[str]) -> str:
    more = len(partitions) - _NAMED
    return ", ".join(partitions[:_NAMED]) + (f" and {more} more" if more > 0 else "")
