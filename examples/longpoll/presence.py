"""Presence: the people who have sent a heartbeat lately are online."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from examples.longpoll.store import PEOPLE_KEY, SESSION_TIMEOUT, Store
from purgatory import Purgatory, Session
from purgatory.relay import Relay


@dataclass(frozen=True, slots=True)
class People:
    """Who is online between two changes."""

    version: str
    """It is the same for the same names in every worker, and differs for any others."""
    names: tuple[str, ...]

    @classmethod
    def of(cls, names: Iterable[str]) -> Self:
        ordered = tuple(sorted(names))
        return cls(hashlib.sha256("\n".join(ordered).encode()).hexdigest()[:16], ordered)


class Presence:
    """A copy of who is online, and a session for each person whose heartbeats reach this worker.

    The store knows when each session ends, and all workers read it there. But a store tells nobody that a
    time has come. So each worker that had a heartbeat lately signals the end of the session. Where a later
    heartbeat has reached another worker, the signal is for nothing, and does no harm.
    """

    def __init__(self, store: Store, relay: Relay, sessions: Purgatory) -> None:
        self.now = People.of(())
        self._store = store
        self._relay = relay
        self._purgatory = sessions
        self._sessions: dict[str, Session] = {}
        self._asked = self._answered = 0

    async def load(self) -> None:
        """Bring who is online from the store."""
        self._asked += 1
        asked = self._asked
        names = await self._store.online()
        # Two answers may come in any order. The last question has the latest answer.
        if asked > self._answered:
            self._answered, self.now = asked, People.of(names)

    async def heartbeat(self, name: str) -> None:
        """Make `name` online for `SESSION_TIMEOUT` seconds. Raises PurgatoryFull for a session too many."""
        session = self._sessions.get(name)
        if session is None:
            session = Session(SESSION_TIMEOUT, lambda: self._end(name))
            self._sessions[name] = self._purgatory.try_complete_else_watch(session)
        new = await self._store.heartbeat(name)
        # After the store, so that the session there has ended when this one ends.
        session.renew()
        if new and not self._store.signals:
            self._relay.signal(PEOPLE_KEY)

    async def leave(self, name: str) -> None:
        """Make `name` offline. Harmless for somebody who is offline already."""
        session = self._sessions.pop(name, None)
        if session is not None:
            session.cancel()
        await self._store.leave(name)
        if not self._store.signals:
            self._relay.signal(PEOPLE_KEY)

    def _end(self, name: str) -> None:
        del self._sessions[name]
        self._relay.signal(PEOPLE_KEY)
