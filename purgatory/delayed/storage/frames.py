"""The frames that the log and the slot files consist of."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from enum import IntEnum
from struct import Struct
from time import sleep
from typing import Final, NamedTuple, TypeVar
from zlib import crc32

from purgatory.delayed import schedule

T = TypeVar("T")

# Magic number, length of the body, CRC, kind, due time in ms, token.
_HEADER: Final = Struct("<HIIBqQ")
_CHECKED: Final = Struct("<BqQ")
_TOKEN: Final = Struct("<Q")
_ID_LENGTH: Final = Struct("<H")
_NO_ID: Final = _ID_LENGTH.pack(0)
HEADER_SIZE: Final = _HEADER.size
_MAGIC: Final = 0xD31A
_MAGIC_BYTES: Final = _MAGIC.to_bytes(2, "little")
# The CRC covers what follows it.
_CHECKED_AT: Final = HEADER_SIZE - _CHECKED.size
# Bytes of an id in UTF-8, of a payload, and of the reason of a dead letter in UTF-8.
MAX_ID: Final = 1 << 10
MAX_PAYLOAD: Final = 1 << 26
MAX_REASON: Final = 1000
# A dead letter has all three, and two lengths. A damaged length cannot make a reader ask for more.
_MAX_BODY: Final = 2 * _ID_LENGTH.size + MAX_REASON + MAX_ID + MAX_PAYLOAD
# Bytes that one read of a scan takes at least: some 120 messages, or 560 notes that a message has ended.
_PIECE: Final = 1 << 14
# A thread pauses after so many frames, which take up to a millisecond.
_STRETCH: Final = 250
# Bytes that take as long as a frame.
_AS_LONG: Final = 256
# Bytes of the first read of a frame.
_PAGE: Final = 4096


class Kind(IntEnum):
    # A message that stays in the log until it is delivered, because it is due soon.
    SOON = 1
    # A message that moves on to its slot file.
    LATER = 2
    # The message with this token is not to be delivered.
    CANCELLED = 3
    DELIVERED = 4
    # The frames after this one come from the segments (token, due] of the log.
    BLOCK = 5
    # A message that could not be delivered.
    DEAD = 6


# To look up a member takes as long as to pack a frame, on Python 3.11. The loops that take most of the time
# use these.
SOON, LATER, CANCELLED, DELIVERED, BLOCK, DEAD = Kind
MESSAGES: Final = frozenset({SOON, LATER})
ENDS: Final = frozenset({CANCELLED, DELIVERED})


class Frame(NamedTuple):
    """A frame, its bytes, and where it is in its file.

    `due` is in milliseconds since the epoch, in UTC. The token tells messages apart, also two messages with
    the same id.
    """

    kind: int
    due: int
    token: int
    data: bytes
    offset: int

    @property
    def length(self) -> int:
        """The bytes of a message's payload and id."""
        return len(self.data) - HEADER_SIZE - _ID_LENGTH.size

    @property
    def body(self) -> bytes:
        return self.data[HEADER_SIZE:]

    @property
    def end(self) -> int:
        return self.offset + len(self.data)

    @property
    def named(self) -> bool:
        """Whether the user chose the id of the message."""
        return self.data[HEADER_SIZE : HEADER_SIZE + _ID_LENGTH.size] > _NO_ID


class Damage(NamedTuple):
    """Bytes of a file that are no frame."""

    offset: int
    end: int


def encode(salt: int, kind: int, due: int, token: int, body: bytes = b"") -> bytes:
    """A frame.

    `salt` is a random number of the store, below 2**32. With it, no payload can look like a frame to a
    reader that looks for the next frame after a damaged one.
    """
    length = len(body)
    crc = crc32(body, crc32(_CHECKED.pack(kind, due, token), salt ^ length))
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
    # Earlier releases have cut the reasons of dead letters within a character.
    return (name.decode(errors="replace") if name else None), body[start + length :]


def token_of(data: bytes) -> int:
    (token,) = _TOKEN.unpack_from(data, HEADER_SIZE - _TOKEN.size)
    return int(token)


def decode(salt: int, data: bytes, at: int, offset: int) -> list[Frame]:
    """The whole frames in a row from index `at` of `data`, which is at `offset` of the file.

    A restart reads the log twice, so this loop runs twice for each of its frames.
    """
    frames: list[Frame] = []
    size, shift = len(data), offset - at
    unpack, new = _HEADER.unpack_from, tuple.__new__
    while size - at >= HEADER_SIZE:
        magic, length, crc, kind, due, token = unpack(data, at)
        end = at + HEADER_SIZE + length
        if magic != _MAGIC or end > size or crc32(data[at + _CHECKED_AT : end], salt ^ length) != crc:
            break
        # Frame(...) takes twice as long.
        frames.append(new(Frame, (kind, due, token, data[at:end], at + shift)))
        at = end
    return frames


def _length(data: bytes, at: int) -> int:
    """How many bytes the frame at index `at` has in all, or its header. 0 for what is no frame."""
    if len(data) - at < HEADER_SIZE:
        # These bytes must be the start of a frame.
        return HEADER_SIZE if data.startswith(_MAGIC_BYTES[: len(data) - at], at) else 0
    magic, length, *_ = _HEADER.unpack_from(data, at)
    return HEADER_SIZE + int(length) if magic == _MAGIC and length <= _MAX_BODY else 0


Read = Callable[[int, int], bytes]


def read_frame(salt: int, read: Read, offset: int) -> Frame | None:
    """The frame at `offset` of a file; None for what is no frame. ``read(offset, length)`` reads the file."""
    data = read(offset, _PAGE)
    length = _length(data, 0)
    frames = decode(salt, data[:length] if length <= _PAGE else read(offset, length), 0, offset)
    return frames[0] if frames else None


def scan(salt: int, read: Read) -> Iterator[Frame | Damage]:
    """All frames of a file, and what lies between them. ``read(offset, length)`` reads the file.

    It holds 16 KiB of the file in memory, or one frame if that is larger, and the frames of these bytes.
    Other threads run meanwhile.
    """
    data, base, at = b"", 0, 0
    damaged: int | None = None
    stretch = 0
    while True:
        frames = decode(salt, data, at, base + at)
        if frames:
            if damaged is not None:
                yield Damage(damaged, frames[0].offset)
                damaged = None
            yield from frames
            at = frames[-1].end - base
            stretch += len(frames)
        length = _length(data, at) if at < len(data) else HEADER_SIZE
        if at + length > len(data):
            # The rest of the frame is not read yet. A damaged length may be anything.
            more = read(base + len(data), max(at + length - len(data), _PIECE))
            if more:
                data, base, at = data[at:] + more, base + at, 0
                stretch += len(more) // _AS_LONG
                if stretch >= _STRETCH:
                    sleep(schedule.PAUSE)
                    stretch = 0
                continue
            if at == len(data):
                break
        if damaged is None:
            damaged = base + at
        following = data.find(_MAGIC_BYTES, at + 1)
        # The last byte may be the first one of the next frame.
        at = following if following >= 0 else max(at + 1, len(data) - 1)
    if damaged is not None:
        yield Damage(damaged, base + at)


def unhurried(items: Iterable[T]) -> Iterator[T]:
    """The items. Other threads run meanwhile."""
    for number, item in enumerate(items, 1):
        yield item
        if number % _STRETCH == 0:
            sleep(schedule.PAUSE)
