"""Keys as they are between processes: an explicit encoding, and the shard of a key.

A key is written as JSON: a str as a string, an int as a number, a tuple as an array, and bytes as an object
such as ``{"hex":"00ff"}``. So a trigger of a database can write a key, too. Nothing depends on `hash`, which
differs between processes, nor on pickle, which runs code.
"""

from __future__ import annotations

import re
import zlib
from json.encoder import encode_basestring_ascii
from typing import Any, Final, TypeAlias

from purgatory.errors import safe_repr

Key: TypeAlias = "str | bytes | int | tuple[Key, ...]"

SHARDS: Final = 256
"""All processes must agree on it, so it is no option.

Of 256 shards, a process with a single watched key hears one signal in 256.
"""

_SURROGATE: Final = re.compile("[\ud800-\udfff]")

_PLAIN: Final = (str, int, bytes, tuple)


def encoded(key: object) -> str:
    """`key` as JSON in ASCII, always the same text for equal keys.

    Takes str, bytes, int and tuples of these, and raises TypeError for anything else. bool and float are
    refused because 1 == True == 1.0: in a dict, they are one key, and as texts they would be three. An object
    of a subclass is taken if it compares as its base does, such as a NamedTuple or a StrEnum. Raises
    ValueError for a str with a surrogate, which is no character.
    """
    kind = type(key)
    if kind is not bool:
        for plain in _PLAIN:
            if kind is plain or (
                issubclass(kind, plain) and kind.__eq__ is plain.__eq__ and kind.__hash__ is plain.__hash__
            ):
                return _encoded_plain(key)
    raise TypeError(
        f"a key that other processes share must be a str, bytes, an int or a tuple of these, "
        f"not {kind.__name__} {safe_repr(key)}"
    )


def _encoded_plain(key: Any) -> str:
    if isinstance(key, str):
        # Two surrogates, which are two code points in Python, would be read as one character.
        if not str.isascii(key) and _SURROGATE.search(key):
            raise ValueError(f"a key must not have surrogates, as {safe_repr(key)} has")
        return encode_basestring_ascii(key)
    if isinstance(key, int):
        return int.__repr__(key)
    if isinstance(key, bytes):
        return f'{{"hex":"{bytes.hex(key)}"}}'
    return f"[{','.join([encoded(each) for each in tuple.__iter__(key)])}]"


def decoded(value: object) -> Key:
    """The key that was encoded, from what `json.loads` makes of it. Raises ValueError for anything else."""
    kind = type(value)
    if kind is str or kind is int:
        return value  # type: ignore[return-value]  # mypy does not narrow by `is`
    if isinstance(value, list):
        return tuple([decoded(each) for each in value])
    if isinstance(value, dict) and value.keys() == {"hex"} and isinstance(value["hex"], str):
        return bytes.fromhex(value["hex"])
    raise ValueError(f"this is no encoded key: {safe_repr(value)}")


def shard_of(text: str) -> int:
    """The shard of an encoded key, the same in every process: its CRC-32 modulo `SHARDS`."""
    return zlib.crc32(text.encode("ascii")) % SHARDS
