"""The server: ``python -m benchmarks.suites.push LOOP``. It serves one log of records in three ways.

``GET /poll?offset=`` is a long poll, ``GET /stream`` are server-sent events, and ``/socket`` is a WebSocket.
``POST /records`` adds a record for all. ``GET /figures`` tells how many clients wait, and the processor time.
"""

import time

import anyio
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

from purgatory import DelayedOperation, Purgatory
from purgatory.web import EventStream, ServerSentEvent, long_poll

# The connections that the kernel may hold until they are accepted.
BACKLOG = 4096
# Seconds, longer than any measurement: no way sends anything while there are no records.
WAIT = 600.0


class DelayedRead(DelayedOperation[tuple[int, list[str]]]):
    """Waits until there is a record at an offset. Its result is the next offset, and the records before."""

    __slots__ = ("_offset", "_records")

    def __init__(self, records: list[str], offset: int) -> None:
        super().__init__(WAIT)
        self._records = records
        self._offset = offset

    def try_complete(self) -> bool:
        return len(self._records) > self._offset and self.force_complete()

    def on_complete(self) -> tuple[int, list[str]]:
        return len(self._records), self._records[self._offset :]


def events(page: tuple[int, list[str]]) -> list[ServerSentEvent]:
    following, records = page
    return [ServerSentEvent(str(following), "\n".join(records))]


def application(purgatory: Purgatory) -> Starlette:
    records: list[str] = []

    async def poll(request: Request) -> Response:
        read = DelayedRead(records, int(request.query_params["offset"]))
        following, page = await long_poll(request, purgatory, read, ["records"])
        return PlainTextResponse("\n".join(page), headers={"next": str(following)})

    async def stream(request: Request) -> EventStream:
        return EventStream(purgatory, lambda last: DelayedRead(records, int(last or 0)), ["records"], events)

    async def send_records(websocket: WebSocket) -> None:
        offset = 0
        while True:
            read = DelayedRead(records, offset)
            offset, page = await purgatory.try_complete_else_watch(read, ["records"])
            await websocket.send_text("\n".join(page))

    async def socket(websocket: WebSocket) -> None:
        await websocket.accept()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(send_records, websocket)
            async for _ in websocket.iter_text():
                pass
            tasks.cancel_scope.cancel()

    async def append(request: Request) -> Response:
        records.append((await request.body()).decode())
        await purgatory.sweep("records")
        return Response()

    async def figures(request: Request) -> Response:
        waiting, seconds = purgatory.statistics().pending, time.process_time()
        return JSONResponse({"waiting": waiting, "processor_seconds": seconds})

    return Starlette(
        routes=[
            Route("/poll", poll),
            Route("/stream", stream),
            WebSocketRoute("/socket", socket),
            Route("/records", append, methods=["POST"]),
            Route("/figures", figures),
        ]
    )


async def serve() -> None:
    """Print the address, and serve until killed."""
    async with Purgatory("clients") as purgatory:
        config = uvicorn.Config(
            application(purgatory),
            port=0,
            http="httptools",
            lifespan="off",
            access_log=False,
            log_level="warning",
            backlog=BACKLOG,
            timeout_keep_alive=3600,
            # Pings would count as messages.
            ws_ping_interval=None,
        )
        listening = config.bind_socket()
        # Before the address is printed, as the reader connects at once.
        listening.listen(BACKLOG)
        print(*listening.getsockname(), flush=True)
        await uvicorn.Server(config).serve([listening])
