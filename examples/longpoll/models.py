"""The shapes of the responses, for the OpenAPI document."""

from typing import Any

from pydantic import BaseModel, Field, JsonValue


class Records(BaseModel):
    """Consecutive records of a topic."""

    topic: str
    log: str = Field(
        description="The id of the log. It changes when the service restarts and offsets begin at 0."
    )
    offset: int = Field(description="The offset of the first record.")
    next: int = Field(description="The offset to ask for next. The Link with rel=next names it, too.")
    records: list[JsonValue]


class Appended(BaseModel):
    """The position of a record that was appended."""

    topic: str
    offset: int


class WhoIsOnline(BaseModel):
    version: str = Field(description="It changes with every change of who is online.")
    online: list[str]


class NameList(BaseModel):
    version: str = Field(description="It changes with the names.")
    names: list[str]


class WhatIsNew(BaseModel):
    """All that has changed."""

    pages: list[Records] = Field(
        description="One for each position that is followed, in the same order, also without records."
    )
    online: NameList | None = Field(description="Who is online, if it has changed.")
    topics: NameList | None = Field(description="The names of all topics, if they have changed.")


class Heartbeat(BaseModel):
    """The effect of a heartbeat."""

    name: str
    timeout: float = Field(description="The seconds within which the next heartbeat is due.")


class Problem(BaseModel):
    """The reason why a request was refused."""

    detail: str


def problem(reason: str) -> dict[str, Any]:
    return {"model": Problem, "description": reason}


NOT_MODIFIED: dict[str, Any] = {
    "description": "The client has the latest version, and none came during the wait."
}
BUSY: dict[str, Any] = {
    **problem("The limit of pending requests or of sessions is reached, or the service is stopping."),
    "headers": {
        "Retry-After": {"schema": {"type": "integer"}, "description": "Seconds to wait before a retry."}
    },
}
