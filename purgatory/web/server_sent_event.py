"""Events as a server sends them: https://html.spec.whatwg.org/multipage/server-sent-events.html.

The encoding is a few lines, so it is here. That of sse-starlette would come with an import that replaces a
method of uvicorn's server, and its response runs four tasks for each client.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

LINE_END: Final = re.compile(r"\r\n|\r|\n")

NOT_IN_ID: Final = re.compile(r"[\0\r\n]")

HEARTBEAT: Final = b":\n\n"
"""A comment, which clients ignore. It tells the proxies between that the connection is in use."""


@dataclass(frozen=True, slots=True)
class ServerSentEvent:
    """One event of a stream.

    `id` is the position behind the event, such as the next offset. A client that has lost its connection
    names the last id that it has got, and the stream goes on from there. It must not be empty.

    `data` is the content, of any number of lines. Without it, the event moves the client's position only, and
    the client's code is not told. `event` is the event's type, which is "message" by default.

    Raises ValueError for an `id` and an `event` that the format cannot carry.
    """

    id: str
    data: str | None = None
    event: str | None = None

    def __post_init__(self) -> None:
        if not self.id or NOT_IN_ID.search(self.id):
            raise ValueError(f"the id of an event must be one line that is not empty, not {self.id!r}")
        if self.event is not None and LINE_END.search(self.event):
            raise ValueError(f"the type of an event must be one line, not {self.event!r}")

    def encode(self) -> bytes:
        lines = [f"id: {self.id}"]
        if self.event is not None:
            lines.append(f"event: {self.event}")
        if self.data is not None:
            lines += [f"data: {line}" for line in LINE_END.split(self.data)]
        return "\n".join([*lines, "\n"]).encode()
