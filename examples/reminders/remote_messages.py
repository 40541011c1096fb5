"""The store of reminders, for the processes that do not own it."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Self

import anyio
import httpx

from purgatory.delayed import IdTaken

PAUSE: Final = 0.1
"""Seconds between two tries to reach the owner."""


class OwnerUnavailable(Exception):
    """Raised when the owner has not answered in time. What was asked for may have been done all the same."""


class RemoteMessages:
    """Schedules and cancels messages in the store that the owner has open.

    While the owner starts again, calls wait, and ask once more. This is right because the owner stores a
    message of the same id, payload and time once. After `patience` seconds they raise OwnerUnavailable.
    """

    def __init__(self, directory: Path, patience: float = 10.0) -> None:
        transport = httpx.AsyncHTTPTransport(uds=str(directory / "socket"))
        self._client = httpx.AsyncClient(transport=transport, base_url="http://owner", timeout=patience)
        self._patience = patience

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self._client.aclose()

    async def schedule(self, payload: bytes, *, at: float, id: str) -> None:
        """Returns when the message is on the owner's disk.

        Raises IdTaken if the id has another message, and ValueError for what `DelayedMessages` refuses.
        """
        answer = await self._ask("PUT", {"id": id, "at": at}, payload)
        if answer.status_code == httpx.codes.CONFLICT:
            raise IdTaken(answer.text)
        answer.raise_for_status()

    async def cancel(self, id: str) -> bool:
        """Whether this has cancelled the message. Also False if a first try did, and its answer was lost.

        Raises ValueError for an id that `DelayedMessages` refuses.
        """
        answer = await self._ask("DELETE", {"id": id})
        return bool(answer.raise_for_status().json())

    async def _ask(
        self, method: str, params: dict[str, str | float], content: bytes | None = None
    ) -> httpx.Response:
        # In a path, an id such as ".." would be a step up.
        with anyio.move_on_after(self._patience):
            while True:
                try:
                    answer = await self._client.request(method, "/messages", content=content, params=params)
                except httpx.TransportError:
                    # The owner has died, or has not started yet.
                    pass
                else:
                    if answer.status_code == httpx.codes.UNPROCESSABLE_ENTITY:
                        raise ValueError(answer.text)
                    if answer.status_code != httpx.codes.SERVICE_UNAVAILABLE:
                        return answer
                await anyio.sleep(PAUSE)
        raise OwnerUnavailable(f"the owner of the store has not answered in {self._patience:g} seconds")
