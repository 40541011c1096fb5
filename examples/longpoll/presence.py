"""Presence: the people who have sent a heartbeat lately are online."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass, field
from typing import Final

from examples.longpoll.limits import Limits
from purgatory import DelayedOperation, Purgatory

PRESENCE_KEY: Final = "presence"
"""The key, in the purgatory of polls, of the operations that wait for a change of presence."""


@dataclass(frozen=True, slots=True)
class Online:
    """The people who were online between two changes."""

    version: str
    names: tuple[str, ...]
    # Encoded once for all the clients that get it.
    json: bytes = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        text = json.dumps({"version": self.version, "online": self.names}, ensure_ascii=False)
        object.__setattr__(self, "json", text.encode())

    @property
    def etag(self) -> str:
        return f'"{self.version}"'


class Presence:
    """A session for everybody who is online. Heartbeats renew it; without them it expires."""

    def __init__(self, sessions: Purgatory, polls: Purgatory, limits: Limits) -> None:
        self.timeout = limits.session_timeout
        self._sessions = sessions
        self._polls = polls
        self._online: dict[str, Session] = {}
        self._id = secrets.token_hex(4)
        self._changes = 0
        self.now = Online(f"{self._id}-0", ())

    def heartbeat(self, name: str) -> None:
        """Make `name` online until `timeout` seconds from now.

        Raises PurgatoryFull when this would open more sessions than the limit allows.
        """
        session = self._online.get(name)
        if session is None:
            session = Session(self, name)
            self._sessions.try_complete_else_watch(session, [name])
            self._online[name] = session
            self._changed()
        else:
            session.reschedule(self.timeout)

    def leave(self, name: str) -> None:
        """Make `name` offline. Harmless if it is offline already."""
        session = self._online.pop(name, None)
        if session is not None:
            session.cancel()
            self._changed()

    def _changed(self) -> None:
        self._changes += 1
        self.now = Online(f"{self._id}-{self._changes}", tuple(sorted(self._online)))
        self._polls.check_and_complete(PRESENCE_KEY)


class Session(DelayedOperation[None]):
    """One person's session. No check completes it; when it expires, the person is offline."""

    def __init__(self, presence: Presence, name: str) -> None:
        super().__init__(presence.timeout)
        self.presence = presence
        self.name = name

    def try_complete(self) -> bool:
        return False

    def on_expiration(self) -> None:
        self.presence.leave(self.name)


class DelayedOnline(DelayedOperation[Online]):
    """Waits until the version of presence is no longer `version`, and returns who is online."""

    def __init__(self, presence: Presence, version: str | None, wait: float) -> None:
        super().__init__(wait)
        self.presence = presence
        self.version = version

    def try_complete(self) -> bool:
        return self.presence.now.version != self.version and self.force_complete()

    def on_complete(self) -> Online:
        return self.presence.now
