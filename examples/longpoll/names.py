"""A set of names that changes now and then, such as who is online."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self


@dataclass(frozen=True, slots=True)
class Names:
    """The names between two changes, in alphabetical order.

    The version is the same for the same names in every process, and differs for any others.
    """

    version: str
    names: tuple[str, ...]
    array: bytes
    """The names as JSON, encoded once for all the clients that get them."""

    @classmethod
    def of(cls, names: Iterable[str]) -> Self:
        ordered = tuple(sorted(names))
        array = json.dumps(ordered, ensure_ascii=False).encode()
        return cls(hashlib.sha256(array).hexdigest()[:16], ordered, array)

    @property
    def etag(self) -> str:
        return f'"{self.version}"'

    def json(self, label: str) -> bytes:
        """An object with the version, and with the names under `label`."""
        return b'{"version":"%s","%s":%s}' % (self.version.encode(), label.encode(), self.array)
