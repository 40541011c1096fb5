"""A fake client of a stream of events, and a log whose records the events are."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, MutableMapping
from typing import Any

from starlette.types import ASGIApp

from purgatory import DelayedOperation, Purgatory
from purgatory.web import EventStream, ServerSentEvent
from tests.web.poll_client import REQUEST, Client


class StreamClient(Client):
    """A client that sends one GET. It reads what it is sent while `reads` is set."""

    def __init__(self, *headers: tuple[bytes, bytes]) -> None:
        super().__init__(REQUEST)
        self.scope = {
            "type": "http",
            "method": "GET",
            "path": "/",
            "query_string": b"",
            "headers": list(headers),
        }
        self.sent: list[MutableMapping[str, Any]] = []
        self.reads = asyncio.Event()
        self.reads.set()

    async def sending(self, message: MutableMapping[str, Any]) -> None:
        await self.reads.wait()
        self.sent.append(message)

    def request(self, application: ASGIApp) -> asyncio.Task[None]:
        async def ask() -> None:
            await application(self.scope, self.receive, self.sending)

        return asyncio.create_task(ask())

    @property
    def status(self) -> int:
        return int(self.sent[0]["status"])

    @property
    def headers(self) -> dict[bytes, bytes]:
        return dict(self.sent[0]["headers"])

    @property
    def body(self) -> bytes:
        return b"".join(message["body"] for message in self.sent[1:])

    @property
    def complete(self) -> bool:
        last = self.sent[-1]
        return last["type"] == "http.response.body" and not last.get("more_body", False)


class Log:
    """Records, and the purgatory of those that wait for the next one."""

    def __init__(self, purgatory: Purgatory) -> None:
        self.purgatory = purgatory
        self.records: list[str] = []

    def append(self, record: str) -> None:
        self.records.append(record)
        self.purgatory.check_and_complete("log")

    def stream(self) -> EventStream:
        return EventStream(self.purgatory, self.read, ["log"], events)

    def read(self, last: str | None) -> DelayedRead:
        return DelayedRead(self, int(last or 0))


class DelayedRead(DelayedOperation[tuple[int, list[str]]]):
    """Waits for records from `offset` on. Its result is the offset, and two of them at most."""

    def __init__(self, log: Log, offset: int, timeout: float = 15.0) -> None:
        super().__init__(timeout)
        self.log = log
        self.offset = offset

    def try_complete(self) -> bool:
        return len(self.log.records) > self.offset and self.force_complete()

    def on_complete(self) -> tuple[int, list[str]]:
        return self.offset, self.log.records[self.offset : self.offset + 2]


def events(page: tuple[int, list[str]]) -> Iterator[ServerSentEvent]:
    offset, records = page
    for number, record in enumerate(records, offset + 1):
        yield ServerSentEvent(str(number), record)
