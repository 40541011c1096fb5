"""The parts of one running service."""

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
    """The topics, the presence, and the purgatories behind them.

    The purgatories are open inside `running`, which can be entered once.
    """

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
        # A signal closes the polls alone. Connections and sessions are needed until the last answer is sent.
        async with self.connections, self.polls, self.sessions, close_on_signal(self.polls):
            yield
