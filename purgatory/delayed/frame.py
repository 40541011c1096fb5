"""The frames that the log and the slot files consist of."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import IntEnum
from struct import Struct
from time import sleep
from typing import Final, NamedTuple
from zlib import crc32

# Magic number, length of the body, CRC, kind, due time in ms, token.
_HEADER: Final = Struct("<HIIBqQ")
_CHECKED: Final = Struct("<BqQ")
_ID_LENGTH: Final = Struct("<H")
HEADER_SIZE: Final = _HEADER.size
_MAGIC: Final = 0xD31A
_MAGIC_BYTES: Final = _MAGIC.to_bytes(2, "little")
# The CRC covers what follows it.
_CHECKED_AT: Final = HEADER_SIZE - _CHECKED.size
# Bytes of an id in UTF-8.
MAX_ID: Final = 1 << 10
# Bytes of a payload. A damaged length cannot make a reader ask for more.
MAX_PAYLOAD: Final = 1 << 26
# Bytes of the reason of a dead letter in UTF-8.
MAX_REASON: Final = 1000
# A dead letter has all of it, and two lengths.
_MAX_BODY: Final = 2 * _ID_LENGTH.size + MAX_REASON + MAX_ID + MAX_PAYLOAD
# Bytes that one read of a scan takes at least: some 500 frames, in about a millisecond.
_PIECE: Final = 1 << 16
# Seconds of a pause after each read of as many. Without it, the event loop would wait up to 5 ms at each turn
# for the thread that scans: a thread keeps the interpreter for so long if it can (sys.getswitchinterval).
_PAUSE: Final = 1e-5
# Bytes of the first read of a frame.
_PAGE: Final = 4096


class Kind(IntEnum):
    """What a frame says."""

    # A message that stays in the log until it is delivered, because it is due soon.
    SOON = 1
    # A message that moves on to its slot file.
    LATER = 2
    # The message with this token is not to be delivered.
    CANCELLED = 3
    DELIVERED = 4
    # The frames behind this one come from the segments (token, due] of the log.
    BLOCK = 5
    # A message that could not be delivered.
    DEAD = 6


MESSAGES: Final = frozenset({Kind.SOON, Kind.LATER})
ENDS: Final = frozenset({Kind.CANCELLED, Kind.DELIVERED})


class Frame(NamedTuple):
    """A frame, its bytes, and where it is in its file.

    `due` is in milliseconds since the epoch, in UTC. The token tells messages apart, also two with the same
    id.
    """

    kind: int
    due: int
    token: int
    data: bytes
    offset: int

    @property
    def body(self) -> bytes:
        return self.data[HEADER_SIZE:]

    @property
    def end(self) -> int:
        return self.offset + len(self.data)

    @property
    def named(self) -> bool:
        """Whether the user chose the id of the message."""
        return any(self.data[HEADER_SIZE : HEADER_SIZE + _ID_LENGTH.size])


class Damage(NamedTuple):
    """Bytes of a file that are no frame."""

    offset: int
    end: int


def encode(salt: int, kind: int, due: int, token: int, body: bytes = b"") -> bytes:
    """A frame.

    `salt` is a random number of the store, below 2**32. With it, no payload can look like a frame to a
    reader that looks for the next frame behind a damaged one.
    """
    checked = _CHECKED.pack(kind, due, token) + body
    length = len(body)
    crc = crc32(checked, salt ^ length)
    return _HEADER.pack(_MAGIC, length, crc, kind, due, token) + body


def message_body(id: str | None, payload: bytes) -> bytes:
    """The body of a message. None stands for the id that is made of the token."""
    name = b"" if id is None else id.encode()
    return _ID_LENGTH.pack(len(name)) + name + payload


def end_body(named: bool) -> bytes:
    """The body of a frame that says that a message was cancelled or delivered."""
    return _ID_LENGTH.pack(named)


def parse_body(body: bytes) -> tuple[str | None, bytes]:
    """The id that the user chose, if any, and the payload."""
    (length,) = _ID_LENGTH.unpack_from(body)
    start = _ID_LENGTH.size
    name = body[start : start + length]
    return (name.decode() if name else None), body[start + length :]


def decode(salt: int, data: bytes, at: int, offset: int) -> Frame | int:
    """The frame at index `at` of `data`, which is at `offset` of its file.

    If it is incomplete, returns how many bytes it has in all. Returns 0 for what is no frame.
    """
    if len(data) - at < HEADER_SIZE:
        # What is there must be the start of a frame.
        return HEADER_SIZE if data.startswith(_MAGIC_BYTES[: len(data) - at], at) else 0
    magic, length, crc, kind, due, token = _HEADER.unpack_from(data, at)
    if magic != _MAGIC or length > _MAX_BODY:
        return 0
    end = at + HEADER_SIZE + length
    if end > len(data):
        return HEADER_SIZE + int(length)
    if crc32(data[at + _CHECKED_AT : end], salt ^ length) != crc:
        return 0
    return Frame(kind, due, token, data[at:end], offset)


Read = Callable[[int, int], bytes]


def read_frame(salt: int, read: Read, offset: int) -> Frame | None:
    """The frame at `offset` of a file; None for what is no frame. ``read(offset, length)`` reads the file."""
    frame = decode(salt, read(offset, _PAGE), 0, offset)
    if isinstance(frame, int) and frame > _PAGE:
        frame = decode(salt, read(offset, frame), 0, offset)
    return frame if isinstance(frame, Frame) else None


def scan(salt: int, read: Read, start: int = 0) -> Iterator[Frame | Damage]:
    """All frames of a file, and what lies between them. ``read(offset, length)`` reads the file.

    It holds 64 KiB of the file in memory, or one frame if that is larger. Other threads run meanwhile.
    """
    data, base, at = b"", start, 0
    damaged: int | None = None
    while True:
        found = decode(salt, data, at, base + at) if at < len(data) else HEADER_SIZE
        if isinstance(found, int) and found and at + found > len(data):
            # The rest of the frame is not read yet. A damaged length may be anything.
            wanted = at + found - len(data)
            more = read(base + len(data), max(wanted, _PIECE))
            if more:
                if len(more) >= _PIECE:
                    sleep(_PAUSE)
                data, base, at = data[at:] + more, base + at, 0
                continue
            if at == len(data):
                break
            found = 0
        if isinstance(found, Frame):
            if damaged is not None:
                yield Damage(damaged, found.offset)
                damaged = None
            yield found
            at = found.end - base
        else:
            if damaged is None:
                damaged = base + at
            following = data.find(_MAGIC_BYTES, at + 1)
            # The last byte may be the first one of the next frame.
            at = following if following >= 0 else max(at + 1, len(data) - 1)
    if damaged is not None:
        yield Damage(damaged, base + at)
