"""The server: ``python -m benchmarks.suites.longpoll WAY LOOP``. Only the way to wait for news differs.

With a third argument, FastAPI handles the polls.

``GET /topics/NAME?client=&offset=&wait=`` answers when there is news for the client, ``POST
/topics/NAME?to=`` adds a record. ``GET /figures`` tells the server's counts, and the longest time for which
its loop was held since ``POST /figures``, which does the same and begins to watch the loop anew.
"""

import asyncio
import json
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Hashable, MutableMapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

import uvicorn
from fastapi import FastAPI
from starlette.requests import Request
from starlette.types import Receive

from benchmarks.harness.event_loop import CollectorPauses, Heartbeat
from purgatory import DelayedOperation, Purgatory
from purgatory.web import ClientDisconnected, poll

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
# The connections that the kernel may hold until they are accepted.
BACKLOG = 4096
# How often a poll on an event looks for its client.
LOOK_SECONDS = 10.0


@dataclass(slots=True)
class Counts:
    # How often a poll has looked whether there are records for it.
    looks: int = 0
    # The polls that wait now.
    waiting: int = 0


@dataclass(slots=True)
class Topic:
    """A log of records, each for all clients or for one. `has_news` is O(1)."""

    name: str
    counts: Counts
    records: list[tuple[str | None, str]] = field(default_factory=list)
    # The ends of the log behind the last record for all clients, and behind the last for each client.
    newest: int = 0
    newest_for: dict[str, int] = field(default_factory=dict)

    def append(self, value: str, to: str | None) -> None:
        self.records.append((to, value))
        if to is None:
            self.newest = len(self.records)
        else:
            self.newest_for[to] = len(self.records)

    def has_news(self, client: str, offset: int) -> bool:
        """Whether there is a record for this client from `offset` on."""
        self.counts.looks += 1
        return self.newest > offset or self.newest_for.get(client, 0) > offset

    def news(self, client: str, offset: int) -> list[str]:
        return [value for to, value in self.records[offset:] if to is None or to == client]


class DelayedPoll(DelayedOperation[None]):
    __slots__ = ("_client", "_offset", "_topic")

    def __init__(self, topic: Topic, client: str, offset: int, timeout: float) -> None:
        super().__init__(timeout)
        self._topic = topic
        self._client = client
        self._offset = offset

    def try_complete(self) -> bool:
        return self._topic.has_news(self._client, self._offset) and self.force_complete()

    @property
    def watched(self) -> tuple[Hashable, ...]:
        """The topic's key, and the key of the records for this client alone."""
        return self._topic.name, (self._topic.name, self._client)


class InPurgatory:
    """An awaited operation for each poll. Made on the running loop."""

    def __init__(self) -> None:
        self.polls = Purgatory("polls")
        self.polls.start()

    async def wait(self, topic: Topic, client: str, offset: int, seconds: float, receive: Receive) -> None:
        delayed = DelayedPoll(topic, client, offset, seconds)
        await self.polls.try_complete_else_watch(delayed, delayed.watched)

    async def notify(self, topic: Topic, to: str | None) -> None:
        if to is None:
            await self.polls.sweep(topic.name)
        else:
            self.polls.check_and_complete((topic.name, to))


class InPurgatoryUntilLeft(InPurgatory):
    """The same with `purgatory.web.poll`, which withdraws the operation when the client leaves."""

    async def wait(self, topic: Topic, client: str, offset: int, seconds: float, receive: Receive) -> None:
        delayed = DelayedPoll(topic, client, offset, seconds)
        await poll(receive, self.polls, delayed, delayed.watched)


class OnCondition:
    """The usual way: a condition for each topic, and a timeout around it."""

    def __init__(self) -> None:
        self._changed: dict[str, asyncio.Condition] = defaultdict(asyncio.Condition)

    async def wait(self, topic: Topic, client: str, offset: int, seconds: float, receive: Receive) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._news(topic, client, offset), seconds)

    async def notify(self, topic: Topic, to: str | None) -> None:
        changed = self._changed[topic.name]
        async with changed:
            changed.notify_all()

    async def _news(self, topic: Topic, client: str, offset: int) -> None:
        changed = self._changed[topic.name]
        async with changed:
            await changed.wait_for(lambda: topic.has_news(client, offset))


class OnConditionUntilLeft(OnCondition):
    """The same, with a second task that listens to the client."""

    async def wait(self, topic: Topic, client: str, offset: int, seconds: float, receive: Receive) -> None:
        waiting = asyncio.ensure_future(super().wait(topic, client, offset, seconds, receive))
        leaving = asyncio.ensure_future(_left(receive))
        done, others = await asyncio.wait((waiting, leaving), return_when=asyncio.FIRST_COMPLETED)
        for task in others:
            task.cancel()
        if waiting not in done:
            raise ClientDisconnected("the client has left")


class OnEvent:
    """An event for each topic, and a look every few seconds whether the client has left."""

    def __init__(self) -> None:
        self._changed: dict[str, asyncio.Event] = defaultdict(asyncio.Event)

    async def wait(self, topic: Topic, client: str, offset: int, seconds: float, receive: Receive) -> None:
        while not topic.has_news(client, offset) and seconds > 0:
            try:
                async with asyncio.timeout(min(seconds, LOOK_SECONDS)):
                    await self._changed[topic.name].wait()
            except TimeoutError:
                seconds -= LOOK_SECONDS
                if await Request({"type": "http"}, receive).is_disconnected():
                    raise ClientDisconnected("the client has left") from None

    async def notify(self, topic: Topic, to: str | None) -> None:
        self._changed.pop(topic.name, asyncio.Event()).set()


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


class OnFuture:
    """The floor: a future, and nothing that ever times out. A poll does not look whether there is news."""

    def __init__(self) -> None:
        self._waiting: dict[Hashable, list[asyncio.Future[None]]] = defaultdict(list)

    async def wait(self, topic: Topic, client: str, offset: int, seconds: float, receive: Receive) -> None:
        if not topic.has_news(client, offset):
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting[topic.name].append(future)
            self._waiting[topic.name, client].append(future)
            await future

    async def notify(self, topic: Topic, to: str | None) -> None:
        for future in self._waiting.pop(topic.name if to is None else (topic.name, to), ()):
            if not future.done():
                future.set_result(None)


Way = InPurgatory | OnCondition | OnEvent | OnFuture
"""How all requests of a server wait.

`wait` returns when there is news for the client, or the time is over. Raises ClientDisconnected. `notify`
wakes the polls that one more record is for: those of one client, or all.
"""

SECTIONS: dict[str, dict[str, type[Way]]] = {
    "does not notice that a client leaves": {
        "purgatory": InPurgatory,
        "Condition + wait_for": OnCondition,
        "a future, no timeout (floor)": OnFuture,
    },
    "withdraws the poll of a client that leaves": {
        "purgatory.web.poll": InPurgatoryUntilLeft,
        "Condition + wait_for + task": OnConditionUntilLeft,
    },
}
# Those that FastAPI handles.
IN_FASTAPI: dict[str, type[Way]] = {
    "purgatory.web.poll": InPurgatoryUntilLeft,
    "Event + is_disconnected": OnEvent,
}
# By their names on the server's command line.
WAYS = {way.__name__: way for ways in (*SECTIONS.values(), IN_FASTAPI) for way in ways.values()}


class Application:
    def __init__(self, way: Way) -> None:
        self._way = way
        self._counts = Counts()
        self._topics: dict[str, Topic] = {}
        self._heartbeat = Heartbeat()
        self._watching: asyncio.Task[None] | None = None

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        answer = await self._answer(scope, receive)
        if answer is None:
            return
        body = json.dumps(answer).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def _answer(self, scope: MutableMapping[str, Any], receive: Receive) -> object | None:
        """What to answer; None to a client that has left."""
        _, place, *name = scope["path"].split("/")
        posted, query = scope["method"] == "POST", dict(parse_qsl(scope["query_string"].decode()))
        if place == "figures":
            return self._figures(watch=posted)
        topic = self._topic(name[0])
        if posted:
            to = query.get("to")
            # A client sends all of a record at once.
            topic.append((await receive())["body"].decode(), to)
            await self._way.notify(topic, to)
            return {"next": len(topic.records)}
        return await self.poll(name[0], query["client"], int(query["offset"]), float(query["wait"]), receive)

    async def poll(self, name: str, client: str, offset: int, wait: float, receive: Receive) -> object | None:
        topic = self._topic(name)
        self._counts.waiting += 1
        try:
            await self._way.wait(topic, client, offset, wait, receive)
        except ClientDisconnected:
            return None
        finally:
            self._counts.waiting -= 1
        return {"next": len(topic.records), "records": topic.news(client, offset)}

    def _topic(self, name: str) -> Topic:
        topic = self._topics.get(name)
        if topic is None:
            topic = self._topics[name] = Topic(name, self._counts)
        return topic

    def _figures(self, *, watch: bool) -> object:
        figures = {
            "waiting": self._counts.waiting,
            "looks": self._counts.looks,
            "stall_ms": self._heartbeat.worst * 1e3,
            "processor_seconds": time.process_time(),
        }
        if watch:
            if self._watching is not None:
                self._watching.cancel()
            self._heartbeat = Heartbeat()
            self._watching = asyncio.create_task(self._heartbeat.until(lambda: False, CollectorPauses()))
        return figures


def in_fastapi(application: Application) -> FastAPI:
    """The application, whose polls FastAPI handles."""
    app = FastAPI()

    @app.get("/topics/{name}")
    async def poll(request: Request, name: str, client: str, offset: int, wait: float) -> object:
        return await application.poll(name, client, offset, wait, request.receive)

    app.mount("/", application)
    return app


async def serve(way: str, *framework: str) -> None:
    """Print the address, and serve until killed."""
    application = Application(WAYS[way]())
    config = uvicorn.Config(
        in_fastapi(application) if framework else application,
        port=0,
        http="httptools",
        ws="none",
        lifespan="off",
        access_log=False,
        log_level="warning",
        backlog=BACKLOG,
        # Longer than any measurement: connections are used again.
        timeout_keep_alive=3600,
    )
    listening = config.bind_socket()
    # Before the address is printed, as the reader connects at once.
    listening.listen(BACKLOG)
    print(*listening.getsockname(), flush=True)
    await uvicorn.Server(config).serve([listening])
