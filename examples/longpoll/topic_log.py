"""The records of one topic: appended at the end, dropped at the start when there are too many."""

from __future__ import annotations

import json
from collections import deque
from dataclasses import dataclass
from itertools import islice
from typing import Final

from examples.longpoll.limits import Limits


@dataclass(frozen=True, slots=True)
class Page:
    """A stretch of a log, as it is answered to a client."""

    topic: str
    log: str
    offset: int
    records: tuple[bytes, ...]

    @property
    def next(self) -> int:
        """The offset to go on from."""
        return self.offset + len(self.records)

    @property
    def etag(self) -> str:
        """The same for the same records, now and later; another one when there are more of them."""
        return f'"{self.log}-{self.offset}-{self.next}"'

    def json(self) -> bytes:
        head = {"topic": self.topic, "log": self.log, "offset": self.offset, "next": self.next}
        return b'%s,"records":[%s]}' % (json.dumps(head).encode()[:-1], b",".join(self.records))


class TopicLog:
    """An append-only log that keeps as many records, and as many bytes of them, as `limits` say.

    A record is JSON, and kept as it is sent. Its offset is how many came before it.
    """

    __slots__ = ("_bytes", "_limits", "_records", "id", "name", "start")

    def __init__(self, name: str, id: str, limits: Limits) -> None:
        self.name: Final = name
        self.id: Final = id
        """Another one whenever the offsets start over."""
        self.start = 0
        """The offset of the oldest record that is still there."""
        self._limits = limits
        self._records: deque[bytes] = deque()
        self._bytes = 0

    def __repr__(self) -> str:
        return f"<TopicLog {self.name!r} start={self.start} end={self.end}>"

    @property
    def end(self) -> int:
        """The offset that the next record will have."""
        return self.start + len(self._records)

    def append(self, record: bytes) -> int:
        """The offset that `record` has got."""
        offset = self.end
        self._records.append(record)
        self._bytes += len(record)
        limits = self._limits
        while len(self._records) > limits.log_records or self._bytes > limits.log_bytes:
            self._bytes -= len(self._records.popleft())
            self.start += 1
        return offset

    def read(self, offset: int) -> Page:
        """The records from `offset` on, as many as go into one answer. O(log) at worst.

        Raises LookupError when `offset` is not between `start` and `end`.
        """
        if not self.start <= offset <= self.end:
            raise LookupError(f"offset {offset} is not between {self.start} and {self.end}")
        first = offset - self.start
        records = islice(self._records, first, first + self._limits.answer_records)
        return Page(self.name, self.id, offset, tuple(records))
