"""A fake client of a long poll."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, MutableMapping
from typing import Any

from purgatory import Purgatory

REQUEST = {"type": "http.request", "body": b"", "more_body": False}
DISCONNECT = {"type": "http.disconnect"}


class Client:
    """A client as its server sees it: `receive` returns its messages in turn, and waits for more."""

    def __init__(self, *messages: MutableMapping[str, Any]) -> None:
        self.messages: asyncio.Queue[MutableMapping[str, Any] | BaseException] = asyncio.Queue()
        self.receiving = 0
        for message in messages:
            self.send(message)

    def send(self, message: MutableMapping[str, Any] | BaseException) -> None:
        self.messages.put_nowait(message)

    async def receive(self) -> MutableMapping[str, Any]:
        self.receiving += 1
        try:
            message = await self.messages.get()
        finally:
            self.receiving -= 1
        if isinstance(message, BaseException):
            raise message
        return message


async def until(condition: Callable[[], object]) -> None:
    for _ in range(100):
        if condition():
            return
        await asyncio.sleep(0)
    raise AssertionError("the condition did not become true")


async def parked(purgatory: Purgatory, client: Client) -> None:
    """Wait until an operation is pending and its poll receives from the client."""
    await until(lambda: purgatory.statistics().pending and client.receiving)
