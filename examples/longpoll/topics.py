"""The logs of the topics, as far as this worker knows them."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from itertools import islice

from examples.longpoll.store import KEPT, NOWHERE, Excerpt, Store
from purgatory.relay import Relay
from purgatory.web import Position


class TopicLog:
    """The latest records of a topic. A record that has been dropped keeps its offset."""

    __slots__ = ("_records", "end", "id")

    def __init__(self, id: str = NOWHERE.log, start: int = 0) -> None:
        self.id = id
        """It distinguishes this log from an earlier one of the topic, whose offsets mean other records."""
        self.end = start
        """The offset of the next record."""
        self._records: deque[bytes] = deque(maxlen=KEPT)

    @property
    def start(self) -> int:
        """The offset of the oldest record that is left."""
        return self.end - len(self._records)

    def append(self, record: bytes) -> int:
        """Append `record`, and return its offset."""
        self._records.append(record)
        self.end += 1
        return self.end - 1

    def offset_of(self, position: Position) -> int | None:
        """The offset of the first record behind `position`. None when records there are gone."""
        if position == NOWHERE:
            return self.start
        known = position.log == self.id and self.start <= position.offset <= self.end
        return position.offset if known else None

    def read(self, offset: int) -> tuple[bytes, ...]:
        """The records from `offset` on, which is one of this log."""
        return tuple(islice(self._records, offset - self.start, None))


class Topics:
    """A copy of each topic that a client of this worker reads.

    `try_complete` cannot ask the store, because nothing in it may be awaited. So it looks at the copy. The
    relay calls `load` when there may be more.
    """

    def __init__(self, store: Store, relay: Relay) -> None:
        self._store = store
        self._relay = relay
        self._logs: dict[str, TopicLog] = {}

    def log(self, topic: str) -> TopicLog:
        """The copy of `topic`. It is empty when nobody has read the topic here, and when there is none."""
        return self._logs.get(topic) or TopicLog()

    async def append(self, topic: str, record: bytes) -> int:
        """Append `record` in the store, have all workers look at it, and return its offset."""
        offset = await self._store.append(topic, record)
        if not self._store.signals:
            self._relay.signal(topic)
        return offset

    async def load(self, topics: Collection[str]) -> None:
        """Bring what is missing of `topics` from the store, in one request."""
        logs = {topic: self.log(topic) for topic in topics}
        positions = {topic: Position(log.id, log.end) for topic, log in logs.items()}
        for topic, excerpt in (await self._store.read(positions)).items():
            self._take(topic, excerpt)

    def _take(self, topic: str, excerpt: Excerpt) -> None:
        log = self.log(topic)
        if log.id != excerpt.log or log.end < excerpt.offset:
            log = self._logs[topic] = TopicLog(excerpt.log, excerpt.offset)
        # Meanwhile another call may have brought some of these records.
        for record in excerpt.records[log.end - excerpt.offset :]:
            log.append(record)
