"""Sessions kept alive by heartbeats: each beat gives its session a new timeout, in O(1).

    python -m examples.sessions

Every session is one operation that nothing ever completes: it either expires, which is how its end is
noticed, or is withdrawn by a log-out. A beat is a `reschedule`, which costs the same with ten sessions or a
million.
"""

from __future__ import annotations

import anyio

from examples.event_loop import run
from purgatory import DelayedOperation, Purgatory


class Session(DelayedOperation[None]):
    """One client's session; the expiry of the operation is the end of it."""

    def __init__(self, sessions: Sessions, client: str) -> None:
        super().__init__(sessions.timeout)
        self.sessions = sessions
        self.client = client

    def try_complete(self) -> bool:
        return False

    def on_expiration(self) -> None:
        self.sessions.expired(self.client)


class Sessions:
    """Who is online."""

    def __init__(self, purgatory: Purgatory, timeout: float) -> None:
        self.timeout = timeout
        self.lost: list[str] = []
        self._purgatory = purgatory
        self._online: dict[str, Session] = {}

    def log_in(self, client: str) -> None:
        self._online[client] = self._purgatory.try_complete_else_watch(Session(self, client), [client])

    def beat(self, client: str) -> bool:
        """The client lives; False when its session is over and it has to log in again."""
        session = self._online.get(client)
        return session is not None and session.reschedule(self.timeout)

    def log_out(self, client: str) -> None:
        self._online.pop(client).cancel()

    def expired(self, client: str) -> None:
        del self._online[client]
        self.lost.append(client)
        print(f"{client} has not been heard of for {self.timeout} s; online: {', '.join(self.online)}")

    @property
    def online(self) -> list[str]:
        return sorted(self._online)


async def client(sessions: Sessions, name: str, beats: int) -> None:
    """Beats every 50 ms, so many times, and falls silent."""
    sessions.log_in(name)
    for _ in range(beats):
        await anyio.sleep(0.05)
        sessions.beat(name)


async def main() -> list[str]:
    async with Purgatory("sessions") as purgatory:
        sessions = Sessions(purgatory, timeout=0.12)
        async with anyio.create_task_group() as task_group:
            task_group.start_soon(client, sessions, "ada", 2)
            task_group.start_soon(client, sessions, "grace", 6)
            task_group.start_soon(client, sessions, "linus", 9)
        sessions.log_out("linus")
        print("linus has logged out")
        await anyio.sleep(sessions.timeout)
        return sessions.lost


if __name__ == "__main__":
    run(main)
