"""What one running service consists of."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from examples.longpoll.limits import Limits
from examples.longpoll.presence import Presence
from examples.longpoll.topics import Topics
from purgatory import Purgatory
from purgatory.metrics import PurgatoryCollector
from purgatory.web import close_on_signal


class Service:
    """Its purgatories, open while it is `running`, which it is once, and what is waited for in them."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.polls = Purgatory("polls", max_pending=limits.pending)
        self.sessions = Purgatory("sessions", max_pending=limits.sessions)
        self.connections = Purgatory("connections")
        self.collector = PurgatoryCollector(*self.purgatories)
        self.topics = Topics(self.polls, limits)
        self.presence = Presence(self.sessions, self.polls, limits)

    @property
    def purgatories(self) -> tuple[Purgatory, ...]:
        return self.polls, self.sessions, self.connections

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        # At a signal the polls alone are closed: heartbeats and connections go on until the last answer.
        async with self.connections, self.polls, self.sessions, close_on_signal(self.polls):
            yield
