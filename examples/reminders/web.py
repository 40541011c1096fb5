"""The web application, for any number of worker processes. The directory is that of the owner.

``REMINDERS=run uvicorn --factory examples.reminders.web:create_app --workers 4``
"""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated

from fastapi import FastAPI, HTTPException, Query, Request

from examples.reminders.remote_messages import OwnerUnavailable, RemoteMessages
from purgatory.delayed import IdTaken

Time = Annotated[float, Query(ge=0, allow_inf_nan=False, description="Seconds since the epoch.")]


def create_app() -> FastAPI:
    directory = Path(os.environ["REMINDERS"])

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        # In the worker, after the fork.
        async with RemoteMessages(directory) as app.state.messages:
            yield

    app = FastAPI(lifespan=lifespan)

    @app.put("/reminders/{id}", status_code=204)
    async def remind(id: str, at: Time, request: Request) -> None:
        """Store a reminder. The client has this answer when the reminder is on the disk."""
        messages: RemoteMessages = request.app.state.messages
        try:
            await messages.schedule(await request.body(), at=at, id=id)
        except IdTaken as error:
            raise HTTPException(409, str(error)) from error
        except ValueError as error:
            raise HTTPException(422, str(error)) from error
        except OwnerUnavailable as error:
            raise HTTPException(503, str(error), {"Retry-After": "1"}) from error

    @app.delete("/reminders/{id}")
    async def forget(id: str, request: Request) -> bool:
        """Cancel a reminder, and say whether there was one."""
        messages: RemoteMessages = request.app.state.messages
        try:
            return await messages.cancel(id)
        except ValueError as error:
            raise HTTPException(422, str(error)) from error
        except OwnerUnavailable as error:
            raise HTTPException(503, str(error), {"Retry-After": "1"}) from error

    return app
