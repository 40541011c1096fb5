"""The operation of a long poll: it waits for records of a topic, or for a change of who is online."""

from __future__ import annotations

import json
from dataclasses import dataclass

from examples.longpoll.presence import People, Presence
from examples.longpoll.topics import Topics
from purgatory import DelayedOperation
from purgatory.web import Position


@dataclass(frozen=True, slots=True)
class News:
    """What a client did not know."""

    after: Position
    """The position behind the records. The client's next request names it."""
    records: tuple[bytes, ...]
    """Each is a JSON object."""
    people: People | None
    """Who is online, if that has changed."""

    @property
    def tag(self) -> str:
        """The entity tag. It is the same for the same news at any time, and differs for any others."""
        return f'"{self.after}-{len(self.records)}-{self.people and self.people.version}"'

    def json(self) -> bytes:
        people = self.people and {"version": self.people.version, "names": self.people.names}
        head = json.dumps({"after": str(self.after), "people": people}).encode()
        return b'%s, "records": [%s]}' % (head[:-1], b", ".join(self.records))


class DelayedNews(DelayedOperation[News | None]):
    """Waits for records behind `after`, or for a version of who is online other than `people`.

    It watches a key for each, so a page needs one poll, and one connection, for both. `people` is None for a
    client that does not want to hear of them. The result is None when the records behind `after` are gone.
    """

    __slots__ = ("after", "people", "presence", "topic", "topics")

    def __init__(
        self, topics: Topics, presence: Presence, topic: str, after: Position, people: str | None, wait: float
    ) -> None:
        super().__init__(wait)
        self.topics = topics
        self.presence = presence
        self.topic = topic
        self.after = after
        self.people = people

    def try_complete(self) -> bool:
        log = self.topics.log(self.topic)
        offset = log.offset_of(self.after)
        ready = offset is None or offset < log.end or self.people not in (None, self.presence.now.version)
        return ready and self.force_complete()

    def on_complete(self) -> News | None:
        log, people = self.topics.log(self.topic), self.presence.now
        offset = log.offset_of(self.after)
        if offset is None:
            return None
        known = self.people in (None, people.version)
        return News(Position(log.id, log.end), log.read(offset), None if known else people)
