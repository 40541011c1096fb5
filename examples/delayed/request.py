"""What the headers of a record ask for, and how the wheel stores it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from struct import Struct
from typing import Final, Protocol, Self

from examples.delayed.settings import Topics, is_legal
from purgatory.delayed.schedule import FARTHEST

Header = tuple[str, bytes | None]

# What producers set: milliseconds since the epoch, or milliseconds from the timestamp of the record.
DELIVER_AT: Final = "deliver-at"
DELAY_MS: Final = "delay-ms"
TARGET: Final = "target"
# What consumers get.
DELAYED_ID: Final = "delayed-id"
DELAYED_DUE: Final = "delayed-due"
DELAYED_REASON: Final = "delayed-reason"
# The id of a record that the service has written back.
ORIGIN: Final = "delayed-origin"
# When a record leaves its level.
LEVEL_DUE: Final = "delayed-level-due"

_ASKED: Final = frozenset({DELIVER_AT, DELAY_MS, TARGET})
_OWN: Final = frozenset({DELAYED_ID, DELAYED_DUE, DELAYED_REASON, ORIGIN, LEVEL_DUE})
# The wheel stores no later time. The other designs have the same limit.
_LATEST: Final = FARTHEST - 1
# Milliseconds. Python reads no number of more than 4,300 digits.
WHOLE: Final = re.compile(rb"[0-9]{1,16}")
POSITION: Final = re.compile(rb"([0-9]{1,10})-([0-9]{1,19})")
# In a stored request: the due time, and the length of a field, which is -1 for None.
_DUE: Final = Struct("<q")
_LENGTH: Final = Struct("<i")


class Record(Protocol):
    """What the service reads of a client's record. `timestamp` is in milliseconds; -1 if there is none."""

    @property
    def partition(self) -> int: ...
    @property
    def offset(self) -> int: ...
    @property
    def timestamp(self) -> int: ...
    @property
    def key(self) -> bytes | None: ...
    @property
    def value(self) -> bytes | None: ...
    @property
    def headers(self) -> Sequence[Header]: ...


@dataclass(frozen=True, slots=True)
class ProducerRecord:
    """A record that the service sends. Without a `partition`, the client chooses one."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: Sequence[Header] = ()
    partition: int | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """A record, when it is due in milliseconds since the epoch, and the topic that it goes to.

    `id` is the partition and offset of the original record. It stays the same when the record is written
    back, or forwarded twice. A record that is rejected has a `reason`, and is due at once.
    """

    id: str
    due: int
    target: str
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]
    reason: str = ""

    @classmethod
    def parse(cls, record: Record, topics: Topics) -> Self:
        """Read the headers. A record whose headers are missing or wrong goes to the topic for these."""
        id = position(record)
        try:
            origin = _single(record, ORIGIN)
            if origin is not None:
                if not POSITION.fullmatch(origin):
                    raise ValueError(f"{ORIGIN} is set by the service: leave it out")
                id = origin.decode()
            due = _due(record)
            target = _target(record, topics)
        except ValueError as error:
            kept = tuple(header for header in record.headers if header[0] not in _OWN)
            return cls(id, 0, topics.rejected, record.key, record.value, kept, str(error))
        kept = tuple(header for header in record.headers if header[0] not in _ASKED | _OWN)
        return cls(id, due, target, record.key, record.value, kept)

    def refused(self, reason: str, topics: Topics) -> Request:
        """The request whose record its target does not take."""
        headers = (*self.headers, (TARGET, self.target.encode()), (DELIVER_AT, b"%d" % self.due))
        return Request(self.id, 0, topics.rejected, self.key, self.value, headers, reason)

    def without_content(self, reason: str, topics: Topics) -> Request:
        """A request that is rejected, and has nothing of its record but where that is."""
        return Request(self.id, 0, topics.rejected, None, None, (), reason)

    def delivered(self) -> ProducerRecord:
        """The record that consumers get."""
        why = (DELAYED_REASON, self.reason.encode()) if self.reason else (DELAYED_DUE, b"%d" % self.due)
        headers = [*self.headers, (DELAYED_ID, self.id.encode()), why]
        return ProducerRecord(self.target, self.key, self.value, headers)

    def carried(self, topic: str, *more: Header, partition: int | None = None) -> ProducerRecord:
        """A record that the service writes for itself. `parse` reads it."""
        asked = (DELIVER_AT, b"%d" % self.due), (TARGET, self.target.encode())
        headers = [*self.headers, *asked, (ORIGIN, self.id.encode()), *more]
        return ProducerRecord(topic, self.key, self.value, headers, partition)

    def encode(self) -> bytes:
        """All of the request: the delay topic may have lost the record when it is due."""
        texts = self.id, self.target, self.reason
        fields = [*(text.encode() for text in texts), self.key, self.value]
        for name, value in self.headers:
            fields += [name.encode(), value]
        parts = [_DUE.pack(self.due)]
        for field in fields:
            parts += [_LENGTH.pack(-1 if field is None else len(field)), field or b""]
        return b"".join(parts)

    @classmethod
    def decode(cls, stored: bytes) -> Self:
        """The request whose `encode` is `stored`."""
        (due,) = _DUE.unpack_from(stored)
        fields: list[bytes | None] = []
        at = _DUE.size
        while at < len(stored):
            (length,) = _LENGTH.unpack_from(stored, at)
            at += _LENGTH.size
            fields.append(None if length < 0 else stored[at : at + length])
            at += max(0, length)
        id, target, reason, key, value, *rest = fields
        headers = tuple((_text(name), content) for name, content in zip(rest[::2], rest[1::2], strict=True))
        return cls(_text(id), due, _text(target), key, value, headers, _text(reason))


def position(record: Record) -> str:
    """Where a record is. No other record of the topic has the same position."""
    return f"{record.partition}-{record.offset}"


def _single(record: Record, name: str) -> bytes | None:
    """The value of a header; None if the record does not have it. Raises ValueError if it has two."""
    values = [value for header, value in record.headers if header == name]
    if len(values) > 1:
        raise ValueError(f"{name} is there {len(values)} times: send it once")
    if values and values[0] is None:
        raise ValueError(f"{name} has no value")
    return values[0] if values else None


def _due(record: Record) -> int:
    at, delay = _single(record, DELIVER_AT), _single(record, DELAY_MS)
    if at is not None and delay is not None:
        raise ValueError(f"{DELIVER_AT} and {DELAY_MS} are both there: send one of them")
    if at is not None:
        due = _whole(DELIVER_AT, at)
    elif delay is not None:
        if record.timestamp < 0:
            raise ValueError(f"{DELAY_MS} needs the timestamp of the record, which has none")
        due = record.timestamp + _whole(DELAY_MS, delay)
    else:
        raise ValueError(f"{DELIVER_AT} and {DELAY_MS} are missing: send one of them")
    if due > _LATEST:
        raise ValueError(f"{due} is too late: the latest time is {_LATEST} ms since the epoch")
    return due


def _whole(name: str, value: bytes) -> int:
    if not WHOLE.fullmatch(value):
        raise ValueError(f"{name} must be milliseconds, in up to 16 digits, not {value[:40]!r}")
    return int(value)


def _target(record: Record, topics: Topics) -> str:
    value = _single(record, TARGET)
    if value is None:
        raise ValueError(f"{TARGET} is missing: send the name of a topic")
    try:
        target = value.decode()
    except UnicodeDecodeError:
        target = ""
    if not is_legal(target):
        raise ValueError(f"{TARGET} must be the name of a topic, not {value[:40]!r}")
    if topics.owns(target) or target.startswith("__"):
        raise ValueError(f"{TARGET} {target!r} is an internal topic: send the name of another one")
    return target


def _text(field: bytes | None) -> str:
    assert field is not None
    return field.decode()
