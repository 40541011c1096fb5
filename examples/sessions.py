"""Sessions that heartbeats keep alive: each heartbeat gives its session its timeout again, in O(1).

    python -m examples.sessions

When a client has sent no heartbeat for the timeout, its `Session` calls back, and the client is offline. A
client that logs out cancels its session. A heartbeat costs the same with ten sessions as with a million.
"""

from __future__ import annotations

import asyncio

from purgatory import Purgatory, Session


class Sessions:
    """The clients that are online."""

    def __init__(self, purgatory: Purgatory, timeout: float) -> None:
        self.timeout = timeout
        self._purgatory = purgatory
        self._online: dict[str, Session] = {}

    def log_in(self, client: str) -> None:
        old = self._online.get(client)
        if old is not None:
            old.cancel()
        session = Session(self.timeout, lambda: self._lose(client))
        self._online[client] = self._purgatory.try_complete_else_watch(session)

    def heartbeat(self, client: str) -> bool:
        """Renew the client's session. Return False if it is over: then the client has to log in again."""
        session = self._online.get(client)
        return session is not None and session.renew()

    def log_out(self, client: str) -> None:
        session = self._online.pop(client, None)
        if session is not None:
            session.cancel()
        print(f"{client} has logged out; online: {self}")

    def _lose(self, client: str) -> None:
        del self._online[client]
        print(f"{client} has sent no heartbeat for {self.timeout} s; online: {self}")

    def __str__(self) -> str:
        return ", ".join(sorted(self._online)) or "nobody"


async def run_client(sessions: Sessions, name: str, heartbeats: int) -> None:
    """Log in, send `heartbeats` heartbeats, one every 50 ms, and then nothing more."""
    sessions.log_in(name)
    for _ in range(heartbeats):
        await asyncio.sleep(0.05)
        sessions.heartbeat(name)


async def main() -> None:
    async with Purgatory("sessions") as purgatory:
        sessions = Sessions(purgatory, timeout=0.12)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(run_client(sessions, "ada", heartbeats=2))
            tasks.create_task(run_client(sessions, "grace", heartbeats=6))
            tasks.create_task(run_client(sessions, "linus", heartbeats=9))
        sessions.log_out("linus")


if __name__ == "__main__":
    asyncio.run(main())
