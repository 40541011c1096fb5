"""Who is online: whoever has sent a heartbeat lately."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass, field
from typing import Final

from examples.longpoll.limits import Limits
from purgatory import DelayedOperation, Purgatory

PRESENCE_KEY: Final = "presence"
"""What those wait on who want to know of the next change."""


@dataclass(frozen=True, slots=True)
class Online:
    """Who was online, from one change to the next."""

    version: str
    names: tuple[str, ...]
    # Made once, however many clients it is sent to.
    json: bytes = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        text = json.dumps({"version": self.version, "online": self.names}, ensure_ascii=False)
        object.__setattr__(self, "json", text.encode())

    @property
    def etag(self) -> str:
        return f'"{self.version}"'


class Presence:
    """Sessions, each an operation that every heartbeat gives a new timeout, and that nothing completes."""

    def __init__(self, sessions: Purgatory, polls: Purgatory, limits: Limits) -> None:
        self.timeout = limits.session_timeout
        self._sessions = sessions
        self._polls = polls
        self._online: dict[str, Session] = {}
        self._id = secrets.token_hex(4)
        self._changes = 0
        self.now = Online(f"{self._id}-0", ())

    def beat(self, name: str) -> None:
        """`name` is online for another `timeout` seconds. Raises PurgatoryFull when too many are."""
        session = self._online.get(name)
        if session is None:
            session = Session(self, name)
            self._sessions.try_complete_else_watch(session, [name])
            self._online[name] = session
            self._changed()
        else:
            session.reschedule(self.timeout)

    def leave(self, name: str) -> None:
        """`name` is offline now, if it was not before."""
        session = self._online.pop(name, None)
        if session is not None:
            session.cancel()
            self._changed()

    def _changed(self) -> None:
        self._changes += 1
        self.now = Online(f"{self._id}-{self._changes}", tuple(sorted(self._online)))
        self._polls.check_and_complete(PRESENCE_KEY)


class Session(DelayedOperation[None]):
    """One person's; the expiry of the operation is the end of it."""

    def __init__(self, presence: Presence, name: str) -> None:
        super().__init__(presence.timeout)
        self.presence = presence
        self.name = name

    def try_complete(self) -> bool:
        return False

    def on_expiration(self) -> None:
        self.presence.leave(self.name)


class DelayedOnline(DelayedOperation[Online]):
    """Waits until who is online is no longer what it was at `version`."""

    def __init__(self, presence: Presence, version: str | None, wait: float) -> None:
        super().__init__(wait)
        self.presence = presence
        self.version = version

    def try_complete(self) -> bool:
        return self.presence.now.version != self.version and self.force_complete()

    def on_complete(self) -> Online:
        return self.presence.now
