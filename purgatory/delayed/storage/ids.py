"""Which ids are taken, and which messages have ended before their slot is read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from struct import Struct
from threading import Lock
from typing import Final, NamedTuple
from zlib import crc32

from purgatory.delayed.storage.disk import Append, Disk
from purgatory.delayed.storage.frames import CANCELLED, ENDS, Frame, parse_body

# The fields of an `IdRecord`, and the segment of the log.
_FIELDS: Final = Struct("<QqQQQ")
_CRC: Final = Struct("<I")
_SIZE: Final = _FIELDS.size + _CRC.size
# A bucket is rewritten when it has grown to twice its size, and not below this number of bytes.
_REWRITE: Final = 1 << 16
_BUCKETS: Final = 256

Over = Callable[[int, int], bool]
"""Says of a due time and a segment of the log whether no message can be left that belongs to them."""


class IdRecord(NamedTuple):
    """A message with an id that the user chose. `id` is a hash of it, and `digest` a hash of the payload.

    Both are 0 when the message has ended: it was cancelled, or it had such an id and was delivered.
    """

    token: int
    due: int
    id: int = 0
    digest: int = 0


def digest(data: bytes) -> int:
    """64 bits of a hash; never 0."""
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "little") or 1


def record_of(frame: Frame) -> IdRecord | None:
    """What the ids need to know of a frame of the log, if anything."""
    named = frame.named
    if frame.kind in ENDS:
        return IdRecord(frame.token, frame.due) if named or frame.kind == CANCELLED else None
    if not named:
        return None
    name, payload = parse_body(frame.body)
    assert name is not None
    return IdRecord(frame.token, frame.due, digest(name.encode()), digest(payload))


def bucket_of(token: int) -> int:
    """The bucket of a token. A message with an id has a token in the bucket of its id."""
    return token % _BUCKETS


@dataclass(slots=True)
class _Recent:
    """A segment that is not spread yet: the last record of each id, and the tokens that ended."""

    taken: dict[int, IdRecord] = field(default_factory=dict)
    ended: set[int] = field(default_factory=set)


class Ids:
    """Files ``ids/<bucket>`` of 44-byte records, and in memory the records of segments that are not spread.

    Memory does not grow with what is pending. A search reads one of 256 buckets: 4,000 records for a million
    pending messages whose ids the user chose. Another message has a record only when it is cancelled. Any
    thread may search while another one adds.
    """

    def __init__(self, disk: Disk, directory: Path) -> None:
        self._disk = disk
        self._directory = directory
        self._lock = Lock()
        # By segment of the log.
        self._recent: defaultdict[int, _Recent] = defaultdict(_Recent)
        # The size at which each bucket is rewritten.
        self._limits: dict[int, int] = {}

    def note(self, segment: int, record: IdRecord) -> None:
        """Remember what was written to the log, until the segment is spread."""
        with self._lock:
            recent = self._recent[segment]
            if record.id:
                recent.taken[record.id] = record
            else:
                recent.ended.add(record.token)

    def taken(self, id: str) -> IdRecord | None:
        """The message with this id that has not ended, if there is one.

        An id is taken again only when its message is being delivered, or has ended. So only the message of
        its newest record can be still to come, and the cost does not depend on how often the id was used.
        """
        hashed = digest(id.encode())
        recent = self._in_memory()
        # If the newest record is in memory, so is the end of its message, which comes later in the log.
        stored = b""
        newest = next((each.taken[hashed] for each in reversed(recent) if hashed in each.taken), None)
        if newest is None:
            stored = self._stored(bucket_of(hashed))
            newest = next(_find(stored, 16, hashed), None)
        return None if newest is None or _has_ended(newest.token, recent, stored) else newest

    def ended(self, token: int) -> bool:
        """Whether there is a record that the message with this token has ended."""
        return _has_ended(token, self._in_memory(), self._stored(bucket_of(token)))

    def _in_memory(self) -> list[_Recent]:
        # Memory is looked at before the files, so nothing is missed when a segment is spread meanwhile.
        with self._lock:
            return list(self._recent.values())

    def add(self, records: Iterable[IdRecord], segment: int, over: Over, append: Append) -> None:
        """Write the records of a segment to the disk. It can be repeated. Records that are `over` can go."""
        buckets: defaultdict[int, bytearray] = defaultdict(bytearray)
        for record in records:
            fields = _FIELDS.pack(*record, segment)
            buckets[bucket_of(record.token)] += fields + _CRC.pack(crc32(fields))
        grown = []
        for bucket, added in buckets.items():
            # A crash may have left a part of a record, or bytes that were never synced. The records are in
            # the log still, and are added again.
            size = append(self._path(bucket), added, _SIZE)
            if size >= self._limits.get(bucket, _REWRITE):
                grown.append(bucket)
        if buckets:
            self._disk.sync_directory(self._directory)
        for bucket in grown:
            # If there is no room for it now, the next call does it.
            with suppress(OSError):
                kept = _compacted(self._stored(bucket), over)
                self._disk.replace(self._path(bucket), kept)
                self._limits[bucket] = max(_REWRITE, 2 * len(kept))

    def spread(self, segment: int) -> None:
        with self._lock:
            self._recent.pop(segment, None)

    def _stored(self, bucket: int) -> bytes:
        stored = self._disk.read(self._path(bucket)) or b""
        return stored[: len(stored) - len(stored) % _SIZE]

    def _path(self, bucket: int) -> Path:
        return self._directory / f"{bucket:02x}"


def _unpack(records: bytes, at: int) -> tuple[IdRecord, int] | None:
    """The record at `at`, and its segment; None if it is damaged. A torn record would look like an end."""
    if crc32(records[at : at + _FIELDS.size]) != _CRC.unpack_from(records, at + _FIELDS.size)[0]:
        return None
    *fields, segment = _FIELDS.unpack_from(records, at)
    return IdRecord(*fields), segment


def _find(records: bytes, field: int, value: int) -> Iterator[IdRecord]:
    """The records with this value in the field that begins at byte `field`, the newest first."""
    wanted = value.to_bytes(8, "little")
    at = records.rfind(wanted)
    while at >= 0:
        if at % _SIZE == field and (found := _unpack(records, at - field)) is not None:
            yield found[0]
        at = records.rfind(wanted, 0, at + len(wanted) - 1)


def _has_ended(token: int, recent: Iterable[_Recent], stored: bytes) -> bool:
    """Whether memory, or the bucket of the token, has a record that the message has ended."""
    return any(token in each.ended for each in recent) or any(
        not record.id for record in _find(stored, 0, token)
    )


def _compacted(stored: bytes, over: Over) -> bytes:
    """The records that still matter, each once.

    An id is free again when its message has ended, or is over: then its end may be missing. A message may be
    lost because its file was damaged, and an end because the disk was full.
    """
    kept: dict[tuple[int, int], int] = {}
    ended: set[int] = set()
    for at in range(0, len(stored), _SIZE):
        if (found := _unpack(stored, at)) is not None:
            record, segment = found
            if not record.id:
                ended.add(record.token)
            if not over(record.due, segment):
                kept[record.token, record.id] = at
    return b"".join(
        stored[at : at + _SIZE] for (token, id), at in kept.items() if not (id and token in ended)
    )
