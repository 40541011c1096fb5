"""The owner of the store of reminders, which delivers them: ``python -m examples.reminders.owner DIRECTORY``.

Other processes reach it by HTTP over the Unix domain socket DIRECTORY/socket. It ends with an error when the
store fails or another process owns it. A supervisor starts it again.
"""

import asyncio
import sys
from pathlib import Path

import anyio
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from purgatory.delayed import DelayedMessages, IdTaken, StoreFailed


async def deliver(id: str, payload: bytes, due: float) -> None:
    """Stands for what the service does at that time, such as sending an e-mail."""
    print(f"{id}: {payload.decode()}", flush=True)


def create_app(messages: DelayedMessages) -> Starlette:
    async def schedule(request: Request) -> Response:
        """Answer 204 when the message is on the disk. To ask a second time changes nothing."""
        id, at = request.query_params["id"], float(request.query_params["at"])
        try:
            await messages.schedule(await request.body(), at=at, id=id)
        except IdTaken as error:
            return Response(str(error), 409)
        except ValueError as error:
            return Response(str(error), 422)
        except (OSError, StoreFailed) as error:
            return Response(str(error), 503)
        return Response(status_code=204)

    async def cancel(request: Request) -> Response:
        try:
            receipt = await messages.find(request.query_params["id"])
            return JSONResponse(receipt is not None and await messages.cancel(receipt))
        except ValueError as error:
            return Response(str(error), 422)
        except (OSError, StoreFailed) as error:
            return Response(str(error), 503)

    return Starlette(
        routes=[
            Route("/messages", schedule, methods=["PUT"]),
            Route("/messages", cancel, methods=["DELETE"]),
        ]
    )


async def serve(directory: Path) -> None:
    """Own the store in `directory` until SIGTERM or SIGINT. No other user may enter that directory."""
    messages = DelayedMessages(directory / "messages", deliver)
    socket = str(directory / "socket")
    config = uvicorn.Config(create_app(messages), uds=socket, lifespan="off", log_level="warning")
    # The store is entered first: a second owner is refused before it takes the socket of the first one.
    async with anyio.create_task_group() as group, messages:
        group.start_soon(messages.failed)
        await uvicorn.Server(config).serve()


if __name__ == "__main__":
    path = Path(sys.argv[1])
    # uvicorn lets every user connect to the socket. The directory does not.
    path.mkdir(mode=0o700, exist_ok=True)
    asyncio.run(serve(path))
