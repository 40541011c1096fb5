"""Presence in a service with one process, in its memory."""

from __future__ import annotations

from examples.longpoll.limits import Limits
from examples.longpoll.names import Names
from examples.longpoll.presence import PRESENCE_KEY
from purgatory import DelayedOperation, Purgatory


class LocalPresence:
    """`Presence` in memory: each session is an operation, which expires without heartbeats."""

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
            session = Session(self, name)
            self._sessions.try_complete_else_watch(session, [name])
            self._online[name] = session
            self._changed()
        else:
            session.reschedule(self.timeout)

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


class Session(DelayedOperation[None]):
    """One person's session. No check completes it; when it expires, the person is offline."""

    def __init__(self, presence: LocalPresence, name: str) -> None:
        super().__init__(presence.timeout)
        self.presence = presence
        self.name = name

    def try_complete(self) -> bool:
        return False

    def on_expiration(self) -> None:
        self.presence.end(self.name)
