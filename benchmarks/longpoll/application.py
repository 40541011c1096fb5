"""The service, as plain ASGI: what is the same for every way of waiting."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import parse_qsl

from benchmarks.heartbeat import CollectorPauses, Heartbeat
from benchmarks.longpoll.topic import Tally, Topic
from benchmarks.longpoll.ways import Receive, Way

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class Application:
    """Topics to poll and to post to, and the figures of the server.

    ``GET /topics/NAME?client=&offset=&wait=`` answers when there is news for the client, ``POST
    /topics/NAME?to=`` makes some. ``GET /figures`` says what the server has done, and how long its loop was
    held at most since ``POST /figures``, which begins to watch it.
    """

    def __init__(self, way: Way) -> None:
        self._way = way
        self._tally = Tally()
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
        await _send(send, answer)

    async def _poll(self, topic: Topic, query: dict[str, str], receive: Receive) -> object:
        client, offset = query["client"], int(query["offset"])
        self._tally.waiting += 1
        try:
            here = await self._way.wait(topic, client, offset, float(query["wait"]), receive)
        finally:
            self._tally.waiting -= 1
        return {"next": topic.end, "records": topic.news(client, offset)} if here else None

    async def _post(self, topic: Topic, value: str, query: dict[str, str]) -> object:
        to = query.get("to")
        topic.append(value, to)
        await self._way.tell(topic, to)
        return {"next": topic.end}

    def _topic(self, name: str) -> Topic:
        topic = self._topics.get(name)
        if topic is None:
            topic = self._topics[name] = Topic(name, self._tally)
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
            "waiting": self._tally.waiting,
            "looks": self._tally.looks,
            "stall_ms": self._heartbeat.worst * 1e3,
            "processor_seconds": time.process_time(),
        }


async def _body(receive: Receive) -> str:
    body = b""
    more = True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    return body.decode()


async def _send(send: Send, answer: object) -> None:
    body = json.dumps(answer).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})
