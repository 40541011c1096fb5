"""What a relay does at regular intervals."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn, final

import anyio

from purgatory.relay.flusher import Flusher
from purgatory.relay.interest import Interest
from purgatory.relay.link import Link


@final
class Pulse:
    """Sends heartbeats, notices when none comes back, gives the shards their turns, and forgets keys.

    It beats at least three times in `heartbeat` seconds, and at least four times in `anti_entropy` seconds.
    """

    def __init__(
        self,
        interest: Interest,
        link: Link,
        flusher: Flusher,
        clock: Callable[[], float],
        *,
        heartbeat: float,
        anti_entropy: float,
        linger: float,
    ) -> None:
        self._interest = interest
        self._link = link
        self._flusher = flusher
        self._clock = clock
        self._linger = linger
        self._interval = min(heartbeat / 3, anti_entropy / 4)

    async def run(self) -> NoReturn:
        """Beat until cancelled."""
        while True:
            await anyio.sleep(self._interval)
            self._interest.forget(self._clock() - self._linger)
            self._interest.take_turns()
            self._link.check()
            if self._link.connected:
                self._flusher.add_beat()
