"""Events as a server sends them: https://html.spec.whatwg.org/multipage/server-sent-events.html.

The encoding is a few lines, so it is here. The package sse-starlette has it, too. But its import replaces a
method of uvicorn's server, and its response runs four tasks for each client.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from math import inf
from typing import Final, NamedTuple

LINE_END: Final = re.compile(r"\r\n|\r|\n")

# Browsers do not send an empty id back, and HTTP drops spaces around it. Servers answer 400 to a request
# whose Last-Event-ID has control characters (https://github.com/whatwg/html/issues/689).
NOT_AN_ID: Final = re.compile(r"^$|^ | $|[\x00-\x1f\x7f]")

HEARTBEAT: Final = b":\n\n"
"""A comment, which clients ignore. It tells the proxies on the way that the connection is in use."""


@dataclass(frozen=True, slots=True)
class ServerSentEvent:
    """One event of a stream.

    `id` is the position behind the event, such as the text of a `Position`. A client that has lost its
    connection names the last id that it has got, and the stream goes on from there. An id is not empty, has
    no control characters, and has no space around it, because no other id comes back as it was.

    `data` is the content, of any number of lines. Without it, the event moves the client's position only, and
    the client's code is not told. `event` is the event's type, which is "message" by default.

    `retry` is the time, in seconds, after which a client that loses its connection connects again. It holds
    from this event on, and is sent in whole milliseconds. Give each client another `retry`, so that not all
    clients come back at the same moment.

    Raises ValueError for another `id`, and for what the format cannot carry: an `event` of several lines,
    text that UTF-8 cannot encode, such as half of a surrogate pair, and a `retry` that is negative or not
    finite.
    """

    id: str
    data: str | None = None
    event: str | None = None
    retry: float | None = None
    _encoded: bytes = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if NOT_AN_ID.search(self.id):
            words = "text without control characters, that has no space around it and is not empty"
            raise ValueError(f"the id of an event must be {words}, not {self.id!r}")
        if self.event is not None and LINE_END.search(self.event):
            raise ValueError(f"the type of an event must be one line, not {self.event!r}")
        if self.retry is not None and not 0 <= self.retry * 1000 < inf:
            raise ValueError(f"the retry of an event must be finite and not negative, not {self.retry!r}")
        # Not when the event is sent: an error would then end a stream that has begun.
        object.__setattr__(self, "_encoded", self._encode())

    def _encode(self) -> bytes:
        lines = [f"id: {self.id}"]
        if self.event is not None:
            lines.append(f"event: {self.event}")
        if self.retry is not None:
            lines.append(f"retry: {round(self.retry * 1000)}")
        if self.data is not None:
            lines += [f"data: {line}" for line in LINE_END.split(self.data)]
        try:
            return "\n".join([*lines, "\n"]).encode()
        except UnicodeEncodeError as error:
            wrong = error.object[error.start : error.end]
            raise ValueError(f"the event {self.id!r} has text that UTF-8 cannot encode: {wrong!r}") from None

    def encode(self) -> bytes:
        return self._encoded


class EncodedEvents(NamedTuple):
    """The events of one result, as they are sent."""

    body: bytes
    last: str | None
    """The id of the last event that is sent, of this result or of an earlier one."""
    failure: Exception | None
    """The exception that came in place of the next event."""


def encode_events(events: Iterable[ServerSentEvent], last: str | None) -> EncodedEvents:
    """Encode `events`. An exception that comes before the first event is raised."""
    encoded: list[bytes] = []
    failure = None
    try:
        for event in events:
            last = event.id
            encoded.append(event.encode())
    except Exception as error:
        if not encoded:
            raise
        failure = error
    return EncodedEvents(b"".join(encoded), last, failure)
