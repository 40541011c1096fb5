"""Presence in a service with one process, in its memory."""

from __future__ import annotations

from examples.longpoll.limits import Limits
from examples.longpoll.names import Names
from examples.longpoll.presence import PRESENCE_KEY
from purgatory import Purgatory, Session


class LocalPresence:
    """`Presence` in memory: a person without heartbeats for the timeout of a session is offline."""

    def __init__(self, sessions: Purgatory, polls: Purgatory, limits: Limits) -> None:
        self.timeout = limits.session_timeout
        self._sessions = sessions
        self._polls = polls
        self._online: dict[str, Session] = {}
        self.now = Names.of(())

    async def latest(self) -> Names:
        return self.now

    async def heartbeat(self, name: str) -> None:
        session = self._online.get(name)
        if session is None:
            session = Session(self.timeout, lambda: self.end(name))
            self._online[name] = self._sessions.try_complete_else_watch(session, [name])
            self._changed()
        else:
            session.renew()

    async def leave(self, name: str) -> None:
        self.end(name)

    def end(self, name: str) -> None:
        session = self._online.pop(name, None)
        if session is not None:
            session.cancel()
            self._changed()

    def _changed(self) -> None:
        self.now = Names.of(self._online)
        self._polls.check_and_complete(PRESENCE_KEY)
