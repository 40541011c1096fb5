"""The server: ``python -m benchmarks.suites.longpoll.server WAY LOOP``. Only the way to wait differs.

``GET /topics/NAME?client=&offset=&wait=`` answers when there is news for the client, ``POST
/topics/NAME?to=`` adds a record. ``GET /figures`` tells the server's counts, and the longest time for which
its loop was held since ``POST /figures``, which begins to watch the loop.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import parse_qsl

import uvicorn

from benchmarks.harness import event_loop
from benchmarks.harness.event_loop import CollectorPauses, Heartbeat
from benchmarks.suites.longpoll.ways import WAYS, Counts, Receive, Topic, Way

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
# The connections that the kernel may hold until they are accepted.
BACKLOG = 4096


class Application:
    """The service, as plain ASGI."""

    def __init__(self, way: Way) -> None:
        self._way = way
        self._counts = Counts()
        self._topics: dict[str, Topic] = {}
        self._watching: asyncio.Task[None] | None = None
        self._heartbeat = Heartbeat()

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        method, (_, place, *name) = scope["method"], scope["path"].split("/")
        query = dict(parse_qsl(scope["query_string"].decode()))
        if place == "figures":
            answer = self._watch() if method == "POST" else self._figures()
        elif method == "POST":
            answer = await self._post(self._topic(name[0]), await _body(receive), query)
        else:
            waited = await self._poll(self._topic(name[0]), query, receive)
            if waited is None:
                return
            answer = waited
        body = json.dumps(answer).encode()
        headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def _poll(self, topic: Topic, query: dict[str, str], receive: Receive) -> object:
        client, offset = query["client"], int(query["offset"])
        self._counts.waiting += 1
        try:
            here = await self._way.wait(topic, client, offset, float(query["wait"]), receive)
        finally:
            self._counts.waiting -= 1
        return {"next": topic.end, "records": topic.news(client, offset)} if here else None

    async def _post(self, topic: Topic, value: str, query: dict[str, str]) -> object:
        to = query.get("to")
        topic.append(value, to)
        await self._way.notify(topic, to)
        return {"next": topic.end}

    def _topic(self, name: str) -> Topic:
        topic = self._topics.get(name)
        if topic is None:
            topic = self._topics[name] = Topic(name, self._counts)
        return topic

    def _watch(self) -> object:
        self._heartbeat = Heartbeat()
        self._watching = asyncio.create_task(self._heartbeat.until(lambda: False, CollectorPauses()))
        return {}

    def _figures(self) -> object:
        if self._watching is not None:
            self._watching.cancel()
            self._watching = None
        return {
            "waiting": self._counts.waiting,
            "looks": self._counts.looks,
            "stall_ms": self._heartbeat.worst * 1e3,
            "processor_seconds": time.process_time(),
        }


async def _body(receive: Receive) -> str:
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    return body.decode()


async def _serve(way: Way) -> None:
    await way.start()
    config = uvicorn.Config(
        Application(way),
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
    host, port = listening.getsockname()
    print(f"{host} {port}", flush=True)
    await uvicorn.Server(config).serve([listening])


def main(way: str, loop: str) -> None:
    """Print the address, and serve until killed."""

    async def serve() -> None:
        await _serve(WAYS[way][1]())

    event_loop.run(loop, serve())


if __name__ == "__main__":
    main(*sys.argv[1:])
