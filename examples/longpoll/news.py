"""News of several kinds in one answer: records of some topics, who is online, and which topics there are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from examples.longpoll.limits import Limits
from examples.longpoll.names import Names
from examples.longpoll.presence import PRESENCE_KEY, Presence
from examples.longpoll.topic_log import Page
from examples.longpoll.topics import TOPICS_KEY, Topics, topic_key
from purgatory import DelayedOperation
from purgatory.web import Position


@dataclass(frozen=True, slots=True)
class Known:
    """What a client knows already, and wants to hear news of."""

    positions: tuple[tuple[str, Position], ...]
    """The topics that it follows, each with the position to which it has read. A topic may be there twice."""
    online: str | None
    """The version of who is online. None for a client that does not want to hear of it."""
    topics: str | None
    """The version of the list of topics, likewise."""

    def keys(self) -> Iterator[str]:
        """The keys, in the purgatory of polls, at which there may be news."""
        for topic, _ in self.positions:
            yield topic_key(topic)
        if self.online is not None:
            yield PRESENCE_KEY
        if self.topics is not None:
            yield TOPICS_KEY


@dataclass(frozen=True, slots=True)
class News:
    """What a client did not know."""

    pages: tuple[Page, ...]
    """For each of `Known.positions`, the records from there on, if any."""
    online: Names | None
    """Who is online. None for a client that knows or does not want to."""
    topics: Names | None
    """The names of all topics, likewise."""

    def json(self) -> bytes:
        pages = b",".join(page.json() for page in self.pages)
        online = b"null" if self.online is None else self.online.json("names")
        topics = b"null" if self.topics is None else self.topics.json("names")
        return b'{"pages":[%s],"online":%s,"topics":%s}' % (pages, online, topics)


class DelayedNews(DelayedOperation[News]):
    """Waits until there is news of any kind, and returns all that there is by then.

    It watches all of `known.keys()`, so a client needs one poll, and one connection, for everything. For a
    position that is gone, the page begins with the oldest record.
    """

    def __init__(self, topics: Topics, presence: Presence, known: Known, limits: Limits, wait: float) -> None:
        super().__init__(wait)
        self.topics = topics
        self.presence = presence
        self.known = known
        self.limits = limits

    def try_complete(self) -> bool:
        known = self.known
        return (
            known.online not in (None, self.presence.now.version)
            or known.topics not in (None, self.topics.names.version)
            or any(self._has_more(topic, position) for topic, position in known.positions)
        ) and self.force_complete()

    def on_complete(self) -> News:
        online, topics = self.presence.now, self.topics.names
        return News(
            tuple(self._pages()),
            None if self.known.online in (None, online.version) else online,
            None if self.known.topics in (None, topics.version) else topics,
        )

    def _has_more(self, topic: str, position: Position) -> bool:
        log = self.topics.log(topic)
        return log.end > position.offset or not log.has(position)

    def _pages(self) -> Iterator[Page]:
        """All pages together have no more bytes than one log. What has no room comes with the next poll."""
        room = self.limits.log_bytes
        for topic, position in self.known.positions:
            log = self.topics.log(topic)
            page = log.read(position.offset if log.has(position) else log.start)
            if page.size > room:
                page = Page(topic, log.id, page.offset, ())
            room -= page.size
            yield page
