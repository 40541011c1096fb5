"""Addresses of files: a path, or an address in an object store, such as ``s3://bucket/folder``."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import quote

SCHEMES: Final = ("s3", "gs", "abfss", "hdfs")

# A drive of Windows has one letter.
_IN_STORE: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://([^/]*)/*(.*)", re.DOTALL)
# A password before the @, or parameters such as the signature of Azure.
_SECRET: Final = re.compile(r"^[^/@]*:[^/]*@|[?&]\w+=")
# A backslash, or an encoded character, in a path that is encoded itself.
_DECODED: Final = re.compile(r"%5C|%25[0-9A-Fa-f]{2}")


class InStore(NamedTuple):
    """The parts of an address in an object store."""

    scheme: str
    # The bucket or the container, or the name node of HDFS.
    place: str
    key: str


def in_store(address: str) -> InStore | None:
    """The parts of an address in an object store; None for a path."""
    parts = _IN_STORE.fullmatch(address)
    return None if parts is None else InStore(*parts.groups())


def address_of(text: str) -> str:
    """The address that a person has written, without a slash at its end.

    Raises ValueError if there can be no such address. The message does not repeat the text, which may have a
    password in it.
    """
    text = text.removeprefix("file://")
    parts = in_store(text)
    if parts is None:
        return text.rstrip("/") or text[:1]
    scheme, place, key = parts
    if scheme not in SCHEMES:
        raise ValueError(f"must be a path, or begin with {', '.join(f'{each}://' for each in SCHEMES)}")
    if _SECRET.search(f"{place}/{key}"):
        raise ValueError("must have no password and no signature in it; use variables of the environment")
    if not place:
        raise ValueError(f"must name a bucket or a container, as in {scheme}://bucket/folder")
    return f"{scheme}://{place}/{key}".rstrip("/")


def output_address_of(text: str) -> str:
    """The address of what is written. Raises ValueError as `address_of` does, and if it is not UTF-8."""
    try:
        return address_of(text.encode().decode())
    except UnicodeEncodeError:
        raise ValueError("must be UTF-8, as all addresses in tables are") from None


def table_address_of(text: str) -> str:
    """The address of what has Delta tables. Raises ValueError if deltalake would not find them."""
    address = output_address_of(text)
    if _DECODED.search(delta_uri(address)):
        raise ValueError(
            "must have no backslash, and no % before two digits or letters up to f, which deltalake would "
            f"decode: {absolute(address)}"
        )
    return address


def absolute(address: str) -> str:
    """The address that means the same in every working directory."""
    return address if in_store(address) else os.path.abspath(address)


def delta_uri(address: str) -> str:
    """The address of a Delta table, for the package deltalake."""
    store = in_store(address)
    if store is None:
        return Path(os.path.abspath(address)).as_uri()
    return f"{store.scheme}://{store.place}/{quote(store.key)}"
