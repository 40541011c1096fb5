"""Positions in a log: where a client goes on, and whether the log is still the same."""

from __future__ import annotations

import re
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final, Self

from starlette.exceptions import HTTPException

# JSON carries whole numbers of 15 digits exactly to every client (RFC 8259, section 6).
TEXT: Final = re.compile(r"([A-Za-z0-9_-]{1,64}):([0-9]{1,15})")


@dataclass(frozen=True, slots=True)
class Position:
    """A position in a log. A client that names it has all records before `offset`.

    `log` is the identity of the log. Draw it when the log begins, for example by ``secrets.token_hex(4)``,
    and store it with the records. When a restart loses the records, a new log begins, whose offsets begin at
    0. An offset of the old log names another record of the new log. So a client that named an offset alone
    would miss the records before it. Compare the identity: when the position belongs to another log, answer
    410, or begin with the oldest record.

    ``str(position)`` is its text, such as ``d0390cc6:7``. It can be the id of an event, a query parameter, or
    a part of an entity tag.

    Raises ValueError when `log` is not 1 to 64 letters, digits, hyphens and underscores of ASCII, or when
    `offset` is not a whole number from 0 to 999,999,999,999,999.
    """

    log: str
    offset: int

    def __post_init__(self) -> None:
        if not TEXT.fullmatch(str(self)):
            raise ValueError(f"the text of a position must be like 'd0390cc6:7', not {str(self)!r}")

    def __str__(self) -> str:
        return f"{self.log}:{self.offset}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """The position that a client names. Raises HTTPException, with the status 400, if `text` is none."""
        named = TEXT.fullmatch(text)
        if named is None:
            raise HTTPException(HTTPStatus.BAD_REQUEST, "a position has the text that the server has sent")
        return cls(named[1], int(named[2]))
