"""The answers' shapes, for the OpenAPI document."""

from typing import Any

from pydantic import BaseModel, Field, JsonValue


class Records(BaseModel):
    """Some records of a topic, in order."""

    topic: str
    log: str = Field(description="Another one when the service was started anew and offsets start over.")
    offset: int = Field(description="Of the first record.")
    next: int = Field(description="The offset to go on from. So does the Link with rel=next.")
    records: list[JsonValue]


class Recorded(BaseModel):
    """Where a record went."""

    topic: str
    offset: int


class WhoIsOnline(BaseModel):
    version: str = Field(description="Another one after each change.")
    online: list[str]


class Beat(BaseModel):
    """What a heartbeat is good for."""

    name: str
    timeout: float = Field(description="Seconds within which the next one is due.")


class Problem(BaseModel):
    """Why a request was refused."""

    detail: str


def problem(why: str) -> dict[str, Any]:
    return {"model": Problem, "description": why}


NOT_MODIFIED: dict[str, Any] = {"description": "The client has it already, and it has not changed in time."}
BUSY: dict[str, Any] = {
    **problem("As many wait as may wait, or the service is being stopped."),
    "headers": {"Retry-After": {"schema": {"type": "integer"}, "description": "Seconds."}},
}
