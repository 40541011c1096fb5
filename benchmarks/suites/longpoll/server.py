"""The server: ``python -m benchmarks.suites.longpoll.server WAY LOOP``. Only the way to wait differs.

``GET /topics/NAME?client=&offset=&wait=`` answers when there is news for the client, ``POST
/topics/NAME?to=`` adds a record. ``GET /figures`` tells the server's counts, and the longest time for which
its loop was held since ``POST /figures``, which does the same and begins to watch the loop.
"""

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
from benchmarks.suites.longpoll.ways import WAYS, Counts, Topic, Way
from purgatory.web import ClientDisconnected
from purgatory.web.long_poll import Receive

Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
# The connections that the kernel may hold until they are accepted.
BACKLOG = 4096


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
        topic = self._topics.get(name[0])
        if topic is None:
            topic = self._topics[name[0]] = Topic(name[0], self._counts)
        if posted:
            to = query.get("to")
            # A client sends all of a record at once.
            topic.append((await receive())["body"].decode(), to)
            await self._way.notify(topic, to)
            return {"next": len(topic.records)}
        client, offset = query["client"], int(query["offset"])
        self._counts.waiting += 1
        try:
            await self._way.wait(topic, client, offset, float(query["wait"]), receive)
        except ClientDisconnected:
            return None
        finally:
            self._counts.waiting -= 1
        return {"next": len(topic.records), "records": topic.news(client, offset)}

    def _figures(self, *, watch: bool) -> object:
        if self._watching is not None:
            self._watching.cancel()
        figures = {
            "waiting": self._counts.waiting,
            "looks": self._counts.looks,
            "stall_ms": self._heartbeat.worst * 1e3,
            "processor_seconds": time.process_time(),
        }
        if watch:
            self._heartbeat = Heartbeat()
            self._watching = asyncio.create_task(self._heartbeat.until(lambda: False, CollectorPauses()))
        return figures


async def serve(way: str) -> None:
    """Print the address, and serve until killed."""
    config = uvicorn.Config(
        Application(WAYS[way]()),
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


if __name__ == "__main__":
    event_loop.run(sys.argv[2], serve, sys.argv[1])
