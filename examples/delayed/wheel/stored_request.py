"""A request as bytes. The timing wheel stores it."""

from __future__ import annotations

from struct import Struct
from typing import Final

from examples.delayed.request import Request

_DUE: Final = Struct("<q")
# The length of a field; -1 for None.
_LENGTH: Final = Struct("<i")


def encode(request: Request) -> bytes:
    """All of the request: the delay topic may have lost the record when it is due."""
    fields: list[bytes | None] = [
        request.id.encode(),
        request.target.encode(),
        request.reason.encode(),
        request.key,
        request.value,
    ]
    for name, value in request.headers:
        fields += [name.encode(), value]
    parts = [_DUE.pack(request.due)]
    for field in fields:
        parts += [_LENGTH.pack(-1 if field is None else len(field)), field or b""]
    return b"".join(parts)


def decode(stored: bytes) -> Request:
    """The request whose `encode` is `stored`."""
    (due,) = _DUE.unpack_from(stored)
    fields: list[bytes | None] = []
    at = _DUE.size
    while at < len(stored):
        (length,) = _LENGTH.unpack_from(stored, at)
        at += _LENGTH.size
        fields.append(None if length < 0 else stored[at : at + length])
        at += max(0, length)
    id, target, reason, key, value, *rest = fields
    headers = tuple((_text(name), content) for name, content in zip(rest[::2], rest[1::2], strict=True))
    return Request(_text(id), due, _text(target), key, value, headers, _text(reason))


def _text(field: bytes | None) -> str:
    assert field is not None
    return field.decode()
