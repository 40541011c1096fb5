"""The log of one topic: records are appended at the end and, beyond the limits, dropped at the start."""

from __future__ import annotations

import json
from collections import deque
from dataclasses import dataclass
from itertools import islice
from typing import Final

from examples.longpoll.limits import Limits
from purgatory.web import Position

NOWHERE: Final = Position("none", 0)
"""A position in no log. Ids of logs are hexadecimal."""


@dataclass(frozen=True, slots=True)
class Page:
    """Consecutive records of a log, as one answer carries them."""

    topic: str
    log: str
    """The id of the log."""
    offset: int
    """The offset of the first record."""
    records: tuple[bytes, ...]

    @property
    def next(self) -> int:
        """The offset at which the next page begins."""
        return self.offset + len(self.records)

    @property
    def size(self) -> int:
        """The bytes of its records."""
        return sum(map(len, self.records))

    @property
    def etag(self) -> str:
        """The entity tag. It is the same for the same records at any time, and differs for any others."""
        return f'"{self.log}-{self.offset}-{self.next}"'

    def json(self) -> bytes:
        head = {"topic": self.topic, "log": self.log, "offset": self.offset, "next": self.next}
        return b'%s,"records":[%s]}' % (json.dumps(head).encode()[:-1], b",".join(self.records))


class TopicLog:
    """An append-only log that keeps the latest records, within `limits.log_records` and `limits.log_bytes`.

    A record is the bytes of a JSON value. Its offset is the number of records that were appended before it.
    """

    __slots__ = ("_bytes", "_limits", "_records", "id", "name", "start")

    def __init__(self, name: str, id: str, limits: Limits, start: int = 0) -> None:
        self.name: Final = name
        self.id: Final = id
        """Distinguishes this log from an earlier one of the same name, whose offsets mean other records."""
        self.start = start
        """The offset of the oldest record that the log still has."""
        self._limits = limits
        self._records: deque[bytes] = deque()
        self._bytes = 0

    def __repr__(self) -> str:
        return f"<TopicLog {self.name!r} start={self.start} end={self.end}>"

    @property
    def end(self) -> int:
        """The offset that the next record will get."""
        return self.start + len(self._records)

    def has(self, position: Position) -> bool:
        """Whether all records from `position` on are still here."""
        return position.log == self.id and self.start <= position.offset <= self.end

    def append(self, record: bytes) -> int:
        """Append `record` and return its offset."""
        offset = self.end
        self._records.append(record)
        self._bytes += len(record)
        limits = self._limits
        while len(self._records) > limits.log_records or self._bytes > limits.log_bytes:
            self._bytes -= len(self._records.popleft())
            self.start += 1
        return offset

    def read(self, offset: int) -> Page:
        """Return the records from `offset` on, at most `limits.answer_records` of them.

        The cost grows with the length of the log, because a deque is walked to reach an index.
        Raises LookupError when `offset` is not between `start` and `end`.
        """
        if not self.start <= offset <= self.end:
            raise LookupError(f"offset {offset} is not between {self.start} and {self.end}")
        first = offset - self.start
        records = islice(self._records, first, first + self._limits.answer_records)
        return Page(self.name, self.id, offset, tuple(records))
