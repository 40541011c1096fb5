"""The records of groups and offsets in ``__consumer_offsets``.

They are JSON, since only this coordinator reads them, and a person can read what one coordinator hands over
to the next. Kafka's own records are binary, with internal schemas.
"""

import json
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, Protocol

from anyio.lowlevel import checkpoint

from examples.broker.errors import ErrorCode
from examples.broker.group.group import Group, GroupState
from examples.broker.group.member import Member
from examples.broker.group.offsets import NO_OFFSET, CommittedOffset
from examples.broker.topic_partition import TopicPartition

SLICE: Final = 250
"""The steps between two turns of the event loop: some milliseconds."""

# The fields of a group and of its members in a group's record.
_GENERATION: Final = ("generation_id", "protocol_type", "protocol_name", "leader_id")
_MEMBER: Final = (
    "member_id",
    "group_instance_id",
    "client_id",
    "client_host",
    "session_timeout",
    "rebalance_timeout",
)

Record = tuple[bytes, bytes | None]
"""A key and the latest value for it; None is a tombstone."""


class GroupLog(Protocol):
    """The partitions of ``__consumer_offsets`` that this broker leads."""

    async def append(self, partition: int, records: Sequence[Record]) -> ErrorCode:
        """Append the records; return NONE once all in-sync replicas have them, or Produce's error.

        The records have their place in the log before the first suspension.
        """
        raise NotImplementedError

    def read(self, partition: int) -> Iterable[Record]:
        """Return all records in order, as they are read."""
        raise NotImplementedError


COORDINATOR_ERRORS: Final[Mapping[ErrorCode, ErrorCode]] = {
    ErrorCode.unknown_topic_or_partition: ErrorCode.coordinator_not_available,
    ErrorCode.not_enough_replicas: ErrorCode.coordinator_not_available,
    ErrorCode.not_enough_replicas_after_append: ErrorCode.coordinator_not_available,
    ErrorCode.request_timed_out: ErrorCode.coordinator_not_available,
    ErrorCode.not_leader_or_follower: ErrorCode.not_coordinator,
}
"""The error for the client by the error of the log (as in Kafka's GroupMetadataManager)."""


def group_record(group: Group, assignments: Mapping[str, bytes]) -> Record:
    """Return the record of the group in its current generation, with the members' new assignments."""
    value = {name: getattr(group, name) for name in _GENERATION}
    value["members"] = [
        {
            **{name: getattr(member, name) for name in _MEMBER},
            "protocols": [[name, _text(metadata)] for name, metadata in member.protocols],
            "assignment": _text(assignments[member.member_id]),
        }
        for member in group.members.values()
    ]
    return _key(group.group_id), json.dumps(value).encode()


def offset_record(group_id: str, topic_partition: TopicPartition, committed: CommittedOffset) -> Record:
    """Return the record of a committed offset. ``NO_OFFSET`` has a tombstone."""
    value = [committed.offset, committed.leader_epoch, committed.metadata]
    encoded = None if committed == NO_OFFSET else json.dumps(value).encode()
    return _key(group_id, *topic_partition), encoded


def tombstones(group: Group) -> list[Record]:
    """Return the tombstones of the group and of its offsets, including offsets that are being appended."""
    offsets = [offset_record(group.group_id, entry, NO_OFFSET) for entry in group.offsets.written]
    return [*offsets, (_key(group.group_id), None)]


async def run_in_slices(steps: Iterator[None]) -> None:
    """Run all steps. After each ``SLICE`` of them, all other tasks of the process have a turn."""
    while sum(1 for _ in islice(steps, SLICE)) == SLICE:
        await checkpoint()


def keep_latest(records: Iterable[Record], latest: dict[bytes, bytes]) -> Iterator[None]:
    """Keep the latest value of each key in ``latest``, one record at each step."""
    for key, value in records:
        if value is None:
            latest.pop(key, None)
        else:
            latest[key] = value
        yield


def load(records: Iterable[Record], groups: dict[str, Group]) -> Iterator[None]:
    """Add the groups in the records to ``groups``: STABLE with members, EMPTY without.

    Each step takes about as long as to read one record.
    """
    latest: dict[bytes, bytes] = {}
    yield from keep_latest(records, latest)
    while latest:
        # Free the records one by one: to free a million at once takes a tenth of a second.
        key, value = latest.popitem()
        _load_record(groups, json.loads(key), json.loads(value))
        yield


def _load_record(groups: dict[str, Group], key: Any, value: Any) -> None:
    group_id, *topic_partition = key
    group = groups.setdefault(group_id, Group(group_id))
    if topic_partition:
        group.offsets.load(TopicPartition(*topic_partition), CommittedOffset(*value))
        return
    for fields in value["members"]:
        protocols = tuple((name, b64decode(metadata)) for name, metadata in fields["protocols"])
        assignment = b64decode(fields["assignment"])
        member = Member(**{**fields, "protocols": protocols, "assignment": assignment})
        group.add(member, value["protocol_type"])
    for name in _GENERATION:
        setattr(group, name, value[name])
    group.state = GroupState.STABLE if group.members else GroupState.EMPTY


def _key(*parts: str | int) -> bytes:
    return json.dumps(parts).encode()


def _text(data: bytes) -> str:
    return b64encode(data).decode()
