"""python-socketio: a room for each topic, a client in it for each wait, and the manager for Redis.

The clients are in the worker itself: what is sent to one is handed over, with no socket between.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Self

import socketio

from benchmarks.suites.signals.carrier import Carrier, Woken


class Manager(Carrier):
    async def __aenter__(self) -> Self:
        self._rooms: set[str] = set()
        self._server = Server(self.urls["redis"], self.woken)
        self._server.manager.initialize()
        return self

    async def __aexit__(self, *exception: Any) -> None:
        self._server.manager.thread.cancel()
        await self._server.manager.redis.aclose()

    async def wait_for(self, topics: Sequence[str]) -> None:
        manager = self._server.manager
        for topic in topics:
            if topic not in self._rooms:
                self._rooms.add(topic)
                client = await manager.pre_connect(topic, "/")
                await manager.connect(client, "/")
                await manager.enter_room(client, "/", topic)

    async def send(self, topic: str, record: float) -> None:
        await self._server.emit("record", record, room=topic)


class Server(socketio.AsyncServer):  # type: ignore[misc]  # socketio has no types
    """Its clients are named after the only room of each."""

    def __init__(self, url: str, woken: Woken) -> None:
        super().__init__(client_manager=socketio.AsyncRedisManager(url), async_mode="asgi")
        self._woken = woken

    async def _send_eio_packet(self, eio_sid: str, eio_pkt: Any) -> None:
        # The packet of an event is a digit, and the event with its data in JSON.
        self._woken(eio_sid, json.loads(eio_pkt.data[1:])[1])
