"""A server that raises OSError when it cannot send, as ASGI 2.4 asks, tells a stream of the disconnection."""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from typing import Any

import pytest
from starlette.background import BackgroundTask

from purgatory import Purgatory
from purgatory.web import EventStream, ServerSentEvent
from tests.web.poll_client import parked
from tests.web.stream_client import DelayedRead, Log, StreamClient, events


@pytest.fixture
def log(purgatory: Purgatory) -> Log:
    return Log(purgatory)


class LeavingClient(StreamClient):
    """A client that leaves after it was sent `messages`. Its server raises OSError for each further one."""

    def __init__(self, messages: int, method: str = "GET") -> None:
        super().__init__()
        self.scope["method"] = method
        self.left = messages

    async def sending(self, message: MutableMapping[str, Any]) -> None:
        if len(self.sent) == self.left:
            raise BrokenPipeError("the client has left")
        await super().sending(message)


async def end_by_closing(log: Log) -> None:
    await log.purgatory.aclose()


async def end_by_a_record(log: Log) -> None:
    log.append("a")


@pytest.mark.parametrize(
    ("messages", "end"),
    [
        pytest.param(2, end_by_a_record, id="an event"),
        pytest.param(2, end_by_closing, id="the end"),
    ],
)
async def test_a_stream_whose_client_has_left_ends_without_an_error(
    log: Log, messages: int, end: Callable[[Log], Any]
) -> None:
    ended: list[str] = []
    client, stream = LeavingClient(messages), log.stream()
    stream.background = BackgroundTask(ended.append, "the task has run")
    task = client.request(stream)
    await parked(log.purgatory, client)
    await end(log)
    await task
    assert len(client.sent) == messages
    assert log.purgatory.statistics().pending == 0
    assert ended == ["the task has run"]


@pytest.mark.parametrize(
    ("messages", "method", "what"),
    [(0, "GET", "the headers"), (1, "GET", "the first heartbeat"), (0, "HEAD", "the headers of HEAD")],
)
async def test_a_client_that_leaves_before_the_first_event_leaves_nothing_pending(
    log: Log, messages: int, method: str, what: str
) -> None:
    client = LeavingClient(messages, method)
    await client.request(log.stream())
    assert len(client.sent) == messages, what
    assert log.purgatory.statistics().pending == 0


async def test_an_error_of_the_users_code_is_no_disconnection(log: Log) -> None:
    def read(last: str | None) -> DelayedRead:
        if last is not None:
            raise FileNotFoundError("the log's file")
        return log.read(last)

    def broken(page: tuple[int, list[str]]) -> Iterator[ServerSentEvent]:
        yield from events(page)
        raise PermissionError("the log's file")

    log.append("a")
    for code in ((read, events), (log.read, broken)):
        client = StreamClient()
        with pytest.raises(OSError, match="the log's file"):
            await client.request(EventStream(log.purgatory, code[0], ["log"], code[1]))
        assert client.body == b"id: 1\ndata: a\n\n"
